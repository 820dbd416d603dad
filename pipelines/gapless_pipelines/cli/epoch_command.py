"""`gapless epoch`: the membership with its proofs, and what an operator may do about it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile, JobOption, Operator, ScopeName, StoreUrl
from gapless_pipelines.cli.epoch_wording import cutover_lines, rebuild_lines, seal_lines, show_lines
from gapless_pipelines.cli.failures import INCOMPLETE
from gapless_pipelines.cli.meaning import job_file, meant, only_scope, opened, require_reason
from gapless_pipelines.cli.printing import emit, say_all

if TYPE_CHECKING:
    from gapless.epochs import Epochs
    from gapless.progress import Bound, Domain
    from gapless.store.records import ScopeIdentity

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Who counts as a member, what a change of the list lacks, and an operator's word about it.",
)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would come of it, and change nothing.")]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; kept in the journal.", show_default=False)
]


@app.command("show")
def show(
    job: JobFile = None,
    all_of_them: Annotated[bool, typer.Option("--all", help="Show every partition.")] = False,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show members and candidates, and what the latest list lacks for a cutover."""
    with opened(job, store, scope) as progress:
        document = progress.epoch()
    _tell(document, show_lines(document, all_of_them=all_of_them), as_json=as_json)


@app.command("cutover")
def cutover(
    job: JobFile = None,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Take the step towards the latest list that is proved now.

    Exits with 0 where it was taken or there is nothing to change, 3 where it is refused: then nothing was changed.
    """
    from gapless.epoch_document import cutover_document

    with _epochs(job, store, scope, readonly=dry_run) as epochs:
        document = cutover_document(epochs.cutover(dry_run=dry_run), dry_run=dry_run)
    _tell(document, cutover_lines(document), as_json=as_json)
    return INCOMPLETE if document["missing"] and not document["accepted"] else 0


@app.command("seal")
def seal(
    partition: Annotated[
        str, typer.Argument(metavar="PARTITION", help="A member or a candidate.", show_default=False)
    ],
    reason: Reason,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="POSITION",
            help="The last position it holds, as `gapless status` prints positions.",
            show_default=False,
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="POSITION",
            help="Or the first one that it does not hold: for one that is complete before a position.",
            show_default=False,
        ),
    ] = None,
    operator: Operator = None,
    dry_run: DryRun = False,
    job: JobOption = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """State that a partition holds nothing beyond POSITION: --at or --before it.

    Once it is read that far it leaves by the next cutover, and the frontier is labelled asserted from there on.
    """
    from gapless.epoch_document import sealed_document

    require_reason(reason, "an operator's seal", "gapless epoch seal")
    _require_one_end(at, before)
    with _epochs(job, store, scope, readonly=dry_run) as epochs:
        end = _end(at, before, epochs.domain)
        sealed = epochs.seal(partition, end, reason, operator, dry_run=dry_run)
        document = sealed_document(sealed, epochs.domain, dry_run=dry_run)
    _tell(document, seal_lines(document), as_json=as_json)


@app.command("rebuild")
def rebuild(
    reason: Reason,
    job: JobFile = None,
    operator: Operator = None,
    dry_run: DryRun = False,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Begin a new lineage: the next run reads everything again, as the job file now says it.

    Frontier and files of the old lineage stay readable, marked superseded.
    """
    from gapless.epoch_document import rebuilt_document

    require_reason(reason, "a rebuild", "gapless epoch rebuild")
    identity = None if store is not None else _identity(job_file(job))
    with _epochs(job, store, scope, readonly=dry_run) as epochs:
        rebuilt = epochs.rebuild(reason, operator, identity=identity, dry_run=dry_run)
        document = rebuilt_document(rebuilt, epochs.domain, dry_run=dry_run)
    _tell(document, rebuild_lines(document), as_json=as_json)


def _require_one_end(at: str | None, before: str | None) -> None:
    if (at is None) == (before is None):
        from gapless.errors import ConfigurationError

        raise ConfigurationError(
            "an operator's seal needs --at or --before" + ("" if at is None else ", and not both"),
            where="in `gapless epoch seal`",
            remedy="--at the last position that the partition holds, or --before the first one it does not",
        )


def _end(at: str | None, before: str | None, domain: "Domain") -> "Bound":
    """Where the partition ends. Raises PositionError."""
    from gapless.progress import Bound

    if before is not None:
        return Bound.before(domain.from_text(before))
    if at is None:
        raise AssertionError("no end was given")
    return Bound.through(domain.from_text(at))


def _identity(path: Path) -> "ScopeIdentity":
    """What the job file says the scope is. Raises InvalidConfiguration."""
    from gapless.plan import scope_identity
    from gapless_pipelines.job import load_job

    return scope_identity(load_job(path).source())


@contextmanager
def _epochs(job: Path | None, store: str | None, scope: str | None, *, readonly: bool) -> Iterator["Epochs"]:
    """The scope that is meant. Raises ConfigurationError and StoreError."""
    from gapless.epochs import Epochs
    from gapless.reading import Progress

    what = meant(job, store, scope)
    with Progress(what.store) as progress:
        name = progress.scope(what.scope or only_scope(progress.scopes(), what.store.url)).name
    with Epochs(what.store, name, readonly=readonly) as epochs:
        yield epochs


def _tell(document: Mapping[str, Any], lines: Iterator[str], *, as_json: bool) -> None:
    if as_json:
        emit(document)
    else:
        say_all(lines)
