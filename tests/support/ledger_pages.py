"""Pages and ledgers in few words, for tests of the ledger."""

from gapless.progress import Bound, Certificate, Checkpoint, Ledger, PageAttempt


def page(
    name: str,
    start: str | None,
    following: str | None,
    *events: tuple[str, int],
    certified: Bound | None = None,
    provisional: bool = False,
    generation: str = "",
) -> PageAttempt:
    certificate = None if certified is None else Certificate(certified, "page")
    return PageAttempt(name, start, following, events, certificate, provisional, generation)


def ledger_at(token: str | None, bound: Bound | None = None, **more: int) -> Ledger:
    return Ledger(Checkpoint(1, 0, token, bound), **more)  # type: ignore[arg-type]
