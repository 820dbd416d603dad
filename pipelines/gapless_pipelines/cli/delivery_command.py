"""`gapless delivery`: message logs. Check and install one, see where its shards stand, work on it, print its SQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gapless_pipelines.cli.arguments import AsJson, Debug, ExitCode, JobFile
from gapless_pipelines.cli.failures import INCOMPLETE, USAGE, VIOLATED
from gapless_pipelines.cli.printing import emit, emit_text, number, plural, printable, say, say_all

if TYPE_CHECKING:
    from gapless.delivery import MessageLog, Worker
    from gapless_pipelines.delivery_job import DeliveryJob

SHARDS_SHOWN = 20

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Message logs: a frontier without gaps over rows that are delivered in any order.",
)

OneShard = Annotated[
    str | None, typer.Option("--shard", metavar="SHARD", help="This shard alone.", show_default=False)
]


@app.command("check", short_help="Say what the job means, and whether it is safe; write nothing.")
def check_log(
    job: JobFile = None,
    audit: Annotated[
        bool,
        typer.Option("--audit", help="Also count every covered row, and record what was deleted or added."),
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Look at the table, its set-up and the plan of each statement. Writes nothing without --audit."""
    from gapless_pipelines.cli.delivery_documents import check_document, check_lines

    loaded = _loaded(job)
    if loaded.config.effect is not None:
        loaded.effect()
    with _opened(loaded) as log:
        document = check_document(log, audit=audit)
    if as_json:
        emit(document)
    else:
        say_all(check_lines(document))
    if document["violations"]:
        return VIOLATED
    return USAGE if any(plan["problem"] for plan in document["plans"]) else 0


@app.command("install", short_help="Create its indexes and tables, beside the user's.")
def install_log(
    job: JobFile = None,
    redeclare: Annotated[
        bool,
        typer.Option(
            "--redeclare",
            help="The statuses, columns or table are meant to differ from what was installed before.",
        ),
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Create what is missing: two indexes (PostgreSQL: concurrently), coverage, violations. May be run every time."""
    with _opened(_loaded(job)) as log:
        done = log.install(redeclare=redeclare)
        where = log.where
    if as_json:
        emit(
            {
                "format": 1,
                "tables": list(done.tables),
                "built": list(done.built),
                "indexes": {"open": done.indexes.open, "all": done.indexes.all},
            }
        )
        return
    say(f"{printable(where)}: installed")
    say(f"  created: {printable(', '.join((*done.tables, *done.built))) or 'nothing, it was all there'}")
    say(f"  indexes: {printable(done.indexes.open)} on open rows, {printable(done.indexes.all)} on all rows")


@app.command("status", short_help="Where each shard stands, and who holds it.")
def status_of_log(
    job: JobFile = None,
    shard: OneShard = None,
    as_json: AsJson = False,
    exit_code: ExitCode = False,
    debug: Debug = False,
) -> int:
    """Show coverage, frontier, newly covered rows and blocker, shard by shard."""
    from gapless_pipelines.cli.delivery_documents import shard_argument, status_document, status_lines

    with _opened(_loaded(job)) as log:
        shards = None if shard is None else [shard_argument(log, shard)]
        document = status_document(log, shards)
    if as_json:
        emit(document)
    else:
        say_all(status_lines(document, SHARDS_SHOWN))
    if not exit_code:
        return 0
    if document["violations"]:
        return VIOLATED
    return INCOMPLETE if any(row["blocker"] for row in document["shards"]) else 0


@app.command("run", short_help="Call the effect on what is newly covered, until it is stopped.")
def run_log(
    job: JobFile = None,
    once: Annotated[bool, typer.Option("--once", help="End when nothing is due.")] = False,
    shard: OneShard = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Claim each range that is due, call the effect with (shard, start, end, rows), cover it, and go on."""
    from gapless.delivery import Worker
    from gapless_pipelines.cli.delivery_documents import shard_argument, told_line, work_document
    from gapless_pipelines.cli.stopping import Stopping

    loaded = _loaded(job)
    effect = loaded.effect()
    trigger = loaded.config.trigger
    with _opened(loaded, freshness=_FRESHNESS) as log:
        shards = None if shard is None else [shard_argument(log, shard)]
        worker = Worker(
            log, effect, rows=trigger.rows, shards=shards, report=lambda told: say(told_line(told))
        )
        with Stopping(lambda: None) as stopping:
            stopping.ask_by(worker.stop.set)
            _work(worker, once=once, poll=trigger.poll)
        document = work_document(worker.done)
    if as_json:
        emit(document)
    else:
        say(
            f"{plural(document['ranges'], 'range')}, {plural(document['rows'], 'row')} handed on;"
            f" {number(len(document['held']))} held, {plural(document['violations'], 'violation')}"
        )
    if document["violations"]:
        return VIOLATED
    return INCOMPLETE if document["held"] else 0


@app.command("sql", short_help="Print its tables, indexes and statements, for any language.")
def print_sql(job: JobFile = None, debug: Debug = False) -> None:
    """Print SQL that does what `run` does, with `:name` for parameters. Needs the database, for names and types."""
    with _opened(_loaded(job)) as log:
        emit_text(log.sql())


_FRESHNESS = 0.05
"""Seconds. In a round over many shards the open writers are asked about this often."""


def _work(worker: "Worker", *, once: bool, poll: float) -> None:
    if once:
        worker.round()
    else:
        worker.run(poll=poll)


def _loaded(job: Path | None) -> "DeliveryJob":
    from gapless_pipelines.delivery_job import load_delivery_job
    from gapless_pipelines.job import find_job_file

    return load_delivery_job(find_job_file(key="delivery") if job is None else job)


@contextmanager
def _opened(job: "DeliveryJob", *, freshness: float = 0.0) -> Iterator["MessageLog"]:
    log = job.open(freshness=freshness)
    try:
        yield log
    finally:
        log.close()
