"""`gapless backfill`: read everything the job file says, and say how it ended by what is durable."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from gapless_pipelines.cli.arguments import AsJson, Debug, JobFile
from gapless_pipelines.cli.meaning import job_file
from gapless_pipelines.cli.printing import duration, emit, number, plural, printable, say, say_all

if TYPE_CHECKING:
    from gapless.plan import Plan
    from gapless.settling.local_run import LocalRun
    from gapless.settling.open_run import DeadLetterEffect
    from gapless_pipelines.backfill import Backfill, BackfillResult
    from gapless_pipelines.job import Job

_ENGINE_OPTIONS = "gapless.engine_options"


class BackfillCommand(TyperCommand):
    """What follows `--` is for the engine, and not for the parser of this command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_ENGINE_OPTIONS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def backfill(
    context: typer.Context, job: JobFile = None, as_json: AsJson = False, debug: Debug = False
) -> int:
    """Read all partitions to their end, write the files, and publish the frontier.

    Options of Beam stand after `--`: gapless backfill JOB -- --direct_num_workers=4

    Exits with 0 where everything is read and proved, 3 where something is withheld, held or short of the range's end, 4
    where a newer run has taken over, 5 where the source broke a promise. The first Ctrl-C or SIGTERM finishes the page.
    """
    from gapless_pipelines.job import load_job

    loaded = load_job(job_file(job))
    result = _run(loaded, backfill_of(loaded, context.meta.get(_ENGINE_OPTIONS, ())))
    if as_json:
        emit(_document(result))
    else:
        say_all(_lines(result))
    return result.exit_status


def backfill_of(job: "Job", arguments: Sequence[str] = ()) -> "Backfill":
    """What a job's backfill is made of; `arguments` are for Beam. Raises InvalidConfiguration."""
    from gapless_pipelines.backfill import Backfill
    from gapless_pipelines.cli.deferred import DeferredDeadLetters, DeferredEffect

    config = job.config
    return Backfill(
        source=job.source(),
        effect=DeferredEffect(config.effect.target_rows, config.effect.replaceable, job.effect),
        store=job.store.ref(),
        engine=job.engine(arguments, launching=True),
        dead_letters=None if config.dead_letters is None else DeferredDeadLetters(_dead_letters_of(job)),
        retry=job.retry(),
        membership=job.membership(),
        readers=config.source.client.connections,
        processes=0,
    )


def _dead_letters_of(job: "Job") -> "Callable[[], DeadLetterEffect]":
    def make() -> "DeadLetterEffect":
        made = job.dead_letters()
        assert made is not None
        return made

    return make


def _run(job: "Job", backfill: "Backfill") -> "BackfillResult":
    from gapless.clock import SystemClock
    from gapless.progress import Bound
    from gapless_pipelines.backfill import run_backfill
    from gapless_pipelines.cli.backfill_display import Display
    from gapless_pipelines.cli.run_progress import RunProgress
    from gapless_pipelines.cli.stopping import Stopping
    from gapless_pipelines.options import LOCAL

    clock = SystemClock()
    display = Display(backfill.store, job.scope, clock)
    local = backfill.engine.engine == LOCAL
    stop = backfill.source.range.stop
    progress: list[RunProgress] = []

    def on_start(run: "LocalRun", plan: "Plan") -> None:
        if local:
            stopping.ask_by(run.stop)
        else:
            stopping.interrupt()
        say(f"{job.scope}: run {plan.number} on {backfill.engine.engine}, {_plan_text(plan)}")
        progress.append(
            RunProgress(plan.progress, clock.monotonic(), None if stop is None else Bound.before(stop))
        )

    def on_reading() -> None:
        for one in progress:
            display.begin(one, follow_store=not local)

    with Stopping(display.put_back) as stopping:
        try:
            return run_backfill(backfill, display.update, clock, on_start, on_reading)
        finally:
            display.end()


def _plan_text(plan: "Plan") -> str:
    read, known = len(plan.tasks), len(plan.progress)
    if read == known:
        return f"{plural(read, 'partition')} to read"
    return f"{number(read)} of {plural(known, 'partition')} to read"


def _lines(result: "BackfillResult") -> Iterator[str]:
    """How it ended, for a reader."""
    from gapless.status_document import status_document
    from gapless_pipelines.cli.explain_command import blocker_lines, explanation_lines

    speed = f", {number(round(result.events / result.seconds))}/s" if result.events and result.seconds else ""
    yield (
        f"{plural(result.events, 'event')} in {plural(result.pages, 'page')} promoted in {duration(result.seconds)}{speed}"
    )
    document = status_document(result.snapshot)
    yield from explanation_lines(document)
    for blocker in _ended_short(result):
        yield from blocker_lines(blocker, document["as_of"])
    if document["counts"]["violations"]:
        yield f"{plural(document['counts']['violations'], 'violation')} recorded: `gapless violations` shows the evidence"
    yield _verdict(result)


def _ended_short(result: "BackfillResult") -> list[dict[str, Any]]:
    """Partitions that hold only because of the range's end: the source has ended them before it."""
    from gapless.explain import explain, short_of
    from gapless.status_document import blocker_value
    from gapless_pipelines.cli.explain_command import BLOCKERS_SHOWN

    if result.stop is None:
        return []
    holding = {held.row.chain for held in explain(result.snapshot).holding}
    short = [held for held in short_of(result.snapshot, result.stop) if held.row.chain not in holding]
    return [blocker_value(held, result.snapshot.scope.domain) for held in short[:BLOCKERS_SHOWN]]


def _verdict(result: "BackfillResult") -> str:
    from gapless_pipelines.backfill import VERDICTS

    text = VERDICTS[result.exit_status]
    scope, stop = result.snapshot.scope, result.stop
    if result.exit_status == 3 and stop is not None and (scope.frontier is None or scope.frontier < stop):
        from gapless.explain import members_of
        from gapless.progress import ChainState, bound_text

        text = f"short of the range's end, {printable(bound_text(stop, scope.domain))}: " + (
            "the source has ended and certifies no more; running it again changes that only if the source does"
            if all(row.state is ChainState.ENDED for row in members_of(result.snapshot))
            else "run it again to go on from here"
        )
    return text


def _document(result: "BackfillResult") -> dict[str, Any]:
    from gapless.status_document import FORMAT, bound_value, status_document

    domain = result.snapshot.scope.domain
    return {
        "format": FORMAT,
        "scope": result.snapshot.scope.scope,
        "run": {"id": result.run_id, "number": result.number},
        "exit_status": result.exit_status,
        "complete": result.complete,
        "stop": bound_value(result.stop, domain),
        "pages": result.pages,
        "events": result.events,
        "passes": result.passes,
        "seconds": round(result.seconds, 3),
        "status": status_document(result.snapshot),
    }
