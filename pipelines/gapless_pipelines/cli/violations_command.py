"""`gapless violations`: what the source broke of its promises, with the evidence."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gapless_pipelines.cli.arguments import AsJson, Debug, ExitCode, JobFile, ScopeName, StoreUrl
from gapless_pipelines.cli.failures import VIOLATED
from gapless_pipelines.cli.meaning import opened
from gapless_pipelines.cli.printing import emit, plural, printable, say, say_all
from gapless_pipelines.cli.wording import bound_words

if TYPE_CHECKING:
    from gapless.progress import Domain
    from gapless.store.records import Violation

_KINDS = {
    "event_behind_bound": "an event behind what was certified",
    "certificate_went_back": "a certificate lower than an earlier one",
    "certificate_behind_events": "a certificate behind events of its own page",
}


def violations(
    job: JobFile = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    exit_code: ExitCode = False,
    debug: Debug = False,
) -> int:
    """Show what the source broke: events and certificates that contradict what it had certified.

    Those of a lineage that a rebuild has ended are shown with it, and count for no exit status.
    """
    with opened(job, store, scope) as progress:
        present, domain = progress.lineage, progress.domain
        found = [_value(violation, domain) for violation in progress.violations()]
        name = progress.name
    if as_json:
        from gapless.status_document import FORMAT

        emit({"format": FORMAT, "scope": name, "violations": found})
    else:
        say(f"{printable(name)}: {plural(len(found), 'violation')}")
        for violation in found:
            say_all(_lines(violation, present))
    counted = [violation for violation in found if violation["lineage"] == present]
    return VIOLATED if exit_code and counted else 0


def _value(violation: "Violation", domain: "Domain") -> dict[str, Any]:
    from gapless.status_document import bound_value, instant

    return {
        "lineage": violation.lineage,
        "partition": violation.partition,
        "kind": violation.kind,
        "sequence": violation.sequence,
        "event_id": violation.event_id,
        "position": None if violation.position is None else domain.text(violation.position),
        "bound": bound_value(violation.bound, domain),
        "detail": violation.detail,
        "recorded_at": instant(violation.recorded_at),
    }


def _lines(violation: dict[str, Any], lineage: int) -> Iterator[str]:
    kind = _KINDS.get(violation["kind"], violation["kind"].replace("_", " "))
    yield f"  {printable(violation['partition'])}, page {violation['sequence']}: {kind}" + (
        "" if violation["lineage"] == lineage else f" (lineage {violation['lineage']}, superseded)"
    )
    if violation["event_id"] is not None:
        place = "" if violation["position"] is None else f" at {printable(violation['position'])}"
        yield f"    event: {printable(violation['event_id'])}{place}"
    if violation["bound"] is not None:
        yield f"    certified: {bound_words(violation['bound'])}"
    yield f"    found: {printable(violation['detail'])}, {violation['recorded_at']}"
