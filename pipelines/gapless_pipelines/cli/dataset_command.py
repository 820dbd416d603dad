"""`gapless dataset`: the promoted files and their rows, as the manifest lists them; a view for DuckDB; a sweep of the rest."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gapless.errors import ConfigurationError, NotReached
from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile, ScopeName, StoreUrl
from gapless_pipelines.cli.meaning import job_file, opened
from gapless_pipelines.cli.printing import emit, emit_text, number, plural, printable, say, say_all

if TYPE_CHECKING:
    from gapless.progress import Domain
    from gapless.reading import DataFile
    from gapless_pipelines.job import Job


def dataset(
    job: JobFile = None,
    through: Annotated[
        str | None,
        typer.Option(
            "--through",
            metavar="POSITION",
            help="Only the files that everything at or below it stands in; refused (3) where that is not complete.",
            show_default=False,
        ),
    ] = None,
    duckdb: Annotated[
        bool, typer.Option("--duckdb", help="Print SQL that makes a DuckDB view of the files.")
    ] = False,
    vacuum: Annotated[
        bool, typer.Option("--vacuum", help="Remove files that no manifest lists and no run can still list.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --vacuum: only say what would go.")
    ] = False,
    lineage: Annotated[
        int | None,
        typer.Option(
            "--lineage",
            metavar="N",
            help="The files of a lineage that a rebuild has ended. Left out: the present one.",
            show_default=False,
        ),
    ] = None,
    store: StoreUrl = None,
    scope: ScopeName = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the promoted files. Files that are not listed here count for nothing, wherever they lie."""
    if vacuum:
        if duckdb or any(given is not None for given in (through, lineage, store, scope)):
            raise ConfigurationError(
                "--vacuum goes with a job file and --dry-run only",
                where="in `gapless dataset`",
                remedy="name the job file: it says in which folders the files lie",
            )
        _vacuum(job_file(job), dry_run=dry_run, as_json=as_json)
        return
    if dry_run:
        raise ConfigurationError(
            "--dry-run goes with --vacuum", where="in `gapless dataset`", remedy="leave it out"
        )
    with opened(job, store, scope) as progress:
        present = progress.lineage
        lineage = present if lineage is None else lineage
        files = progress.files(through, lineage=lineage)
        name, domain = progress.name, progress.domain
    if duckdb:
        emit_text(view_of(name, files))
    elif as_json:
        emit(document_of(name, lineage, domain, files))
    else:
        superseded = lineage != present
        say_all(_lines(f"{name}, lineage {lineage}, superseded" if superseded else name, domain, files))
    say(*missing_lines(files))


def missing_lines(files: "Sequence[DataFile]") -> Iterator[str]:
    """Listed files that cannot be seen: the manifest says what was written, and not what somebody took away since."""
    missing = [file for file in files if not Path(file.path).exists()]
    if missing:
        rows = sum(file.rows for file in missing)
        yield (
            f"not found here: {number(len(missing))} of {plural(len(files), 'file')}, with {plural(rows, 'row')}, the first"
            f" {printable(missing[0].path)}: moved, deleted or on another machine; no backfill writes them again"
        )


def document_of(scope: str, lineage: int, domain: "Domain", files: "Sequence[DataFile]") -> dict[str, Any]:
    """What `--json` prints, format 1."""
    from gapless.status_document import FORMAT, bound_value

    listed = [
        {
            "path": file.path,
            "partition": file.partition,
            "sequence": file.sequence,
            "rows": file.rows,
            "bound": bound_value(file.bound, domain),
        }
        for file in files
    ]
    return {
        "format": FORMAT,
        "scope": scope,
        "lineage": lineage,
        "files": listed,
        "rows": sum(file.rows for file in files),
    }


def _lines(scope: str, domain: "Domain", files: "Sequence[DataFile]") -> Iterator[str]:
    from gapless.progress import bound_text

    rows = sum(file.rows for file in files)
    yield f"{printable(scope)}: {plural(rows, 'row')} in {plural(len(files), 'file')}"
    for file in files:
        proved = (
            "nothing proved" if file.bound is None else f"proved {printable(bound_text(file.bound, domain))}"
        )
        yield f"  {printable(file.path)}: {plural(file.rows, 'row')}, partition {printable(file.partition)}, {proved}"


def view_of(scope: str, files: "Sequence[DataFile]") -> str:
    """One view over exactly these files. A column that a file does not have reads as nulls."""
    if not files:
        raise NotReached(
            "no file has been promoted yet, and DuckDB makes no view of none",
            where=f"scope {scope}",
            remedy="`gapless backfill` first; `gapless status` shows how far it is",
        )
    paths = ",\n  ".join("'" + file.path.replace("'", "''") + "'" for file in files)
    name = '"' + scope.replace('"', '""') + '"'
    return f"CREATE OR REPLACE VIEW {name} AS\nSELECT * FROM read_parquet([\n  {paths}\n], union_by_name = true);"


def _vacuum(path: Path, *, dry_run: bool, as_json: bool) -> None:
    from gapless_pipelines.job import load_job

    job = load_job(path)
    removed = list(_swept(job, dry_run=dry_run))
    if as_json:
        from gapless.status_document import FORMAT

        emit({"format": FORMAT, "scope": job.scope, "dry_run": dry_run, "removed": removed})
        return
    say(*(f"  {printable(file)}" for file in removed))
    say(f"{job.scope}: {plural(len(removed), 'file')} {'to be removed' if dry_run else 'removed'}")


def _swept(job: "Job", *, dry_run: bool) -> Iterator[str]:
    """The effect's files against the manifest, those of dead letters against the dead letters.

    The tokens are read first: a file below its partition's cannot be listed any more, so that what is read later only keeps
    more. A live run's files have its token, and stay."""
    from gapless.effects import sweep

    with job.store.ref().open(readonly=True) as store:
        listed = store.sweepable(job.scope)
        letters = frozenset(
            letter.path for letter in store.dead_letters(job.scope) if letter.path is not None
        )
    folders = [(job.effect().path, listed.paths)]
    if (dead_letters := job.dead_letters()) is not None:
        folders.append((dead_letters.path, letters))
    for root, kept in folders:
        try:
            yield from sweep(
                root, job.scope, listed=kept, fencing_tokens=listed.fencing_tokens, dry_run=dry_run
            )
        except OSError as error:
            raise ConfigurationError(
                f"a file cannot be removed: {error.strerror or error}",
                where=str(error.filename or root),
                remedy="let the user that runs gapless remove files there",
            ) from error
