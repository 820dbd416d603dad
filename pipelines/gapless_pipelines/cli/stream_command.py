"""`gapless stream`: read a scope on for ever, until it is asked to stop, and say by what is durable how that ended."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile
from gapless_pipelines.cli.meaning import job_file
from gapless_pipelines.cli.printing import duration, emit, on_terminal, plural, say, say_all

if TYPE_CHECKING:
    from gapless.plan import Plan
    from gapless.settling.local_run import LocalRun
    from gapless_pipelines.job import Job
    from gapless_pipelines.stream import Stream, StreamResult

_ENGINE_OPTIONS = "gapless.engine_options"
_ENDED = "the source has ended them for good, or nobody kept where to ask again"
_VERDICTS = {
    4: "a newer run has taken over; this one changes nothing any more",
    5: "the source broke a promise: what it certified was not all",
}


def stream(context: typer.Context, job: JobFile = None, as_json: AsJson = False, debug: Debug = False) -> int:
    """Read all partitions on for ever: write the files, and publish the frontier as it moves.

    Options of Beam stand after `--`: gapless stream JOB -- --runner=PrismRunner

    The first Ctrl-C or SIGTERM finishes the page, promotes and publishes: exit status 0. Exits with 4 where a newer run has taken
    over, 5 where the source broke a promise. On another engine the first one cancels the pipeline.
    """
    from gapless_pipelines.job import load_job

    loaded = load_job(job_file(job))
    result = _run(loaded, stream_of(loaded, context.meta.get(_ENGINE_OPTIONS, ())))
    if as_json:
        emit(_document(result))
    else:
        say_all(_lines(result))
    return result.exit_status


def stream_of(job: "Job", arguments: Any = ()) -> "Stream":
    """What a job's stream is made of; `arguments` are for Beam. Raises ConfigurationError where it cannot be followed."""
    from dataclasses import replace

    from gapless.paging.source import following
    from gapless_pipelines.cli.backfill_command import backfill_of
    from gapless_pipelines.stream import Stream

    following(job.source())
    run = backfill_of(job, arguments)
    return Stream(replace(run, source=following(run.source), processes=1), job.polling())


def _run(job: "Job", stream: "Stream") -> "StreamResult":
    from gapless.clock import SystemClock
    from gapless.progress import ChainState
    from gapless_pipelines.cli.backfill_display import Display, News, Picture
    from gapless_pipelines.cli.run_progress import RunProgress
    from gapless_pipelines.cli.stopping import Stopping
    from gapless_pipelines.options import LOCAL
    from gapless_pipelines.stream import run_stream

    clock = SystemClock()
    display = Display(stream.run.store, job.scope, clock, Picture if on_terminal() else News)
    local = stream.run.engine.engine == LOCAL
    progress: list[RunProgress] = []

    def on_start(run: "LocalRun", plan: "Plan") -> None:
        stopping.ask_by(run.stop)
        say(
            f"{job.scope}: run {plan.number} on {stream.run.engine.engine},"
            f" a stream of {plural(len(plan.progress), 'partition')}"
        )
        if ended := sum(one.state is ChainState.ENDED for one in plan.progress):
            say(f"{plural(ended, 'partition')} ended, with no way to go on: {_ENDED}")
        progress.append(RunProgress(plan.progress, clock.monotonic(), endless=True))

    def on_reading() -> None:
        for one in progress:
            display.begin(one, follow_store=not local)

    with Stopping(display.put_back) as stopping:
        try:
            return run_stream(stream, display.update, clock, on_start, on_reading, _say_violations)
        finally:
            display.end()


def _say_violations(count: int) -> None:
    say(f"{plural(count, 'violation')} recorded: `gapless violations` shows the evidence")


def _lines(result: "StreamResult") -> Iterator[str]:
    """How it ended, for a reader."""
    from gapless.status_document import status_document
    from gapless_pipelines.cli.explain_command import explanation_lines

    yield (
        f"{plural(result.events, 'event')} in {plural(result.pages, 'page')} promoted in {duration(result.seconds)}"
    )
    document = status_document(result.snapshot)
    yield from explanation_lines(document)
    if document["counts"]["violations"]:
        _say_violations(document["counts"]["violations"])
    yield _verdict(result)


def _verdict(result: "StreamResult") -> str:
    if result.exit_status in _VERDICTS:
        return _VERDICTS[result.exit_status]
    if result.stopped:
        return "stopped: what was read is promoted and published; start it again to go on from here"
    return "done: the range is read and proved to its end"


def _document(result: "StreamResult") -> dict[str, Any]:
    from gapless.status_document import FORMAT, status_document

    return {
        "format": FORMAT,
        "scope": result.snapshot.scope.scope,
        "run": {"id": result.run_id, "number": result.number},
        "exit_status": result.exit_status,
        "stopped": result.stopped,
        "pages": result.pages,
        "events": result.events,
        "passes": result.passes,
        "seconds": round(result.seconds, 3),
        "status": status_document(result.snapshot),
    }
