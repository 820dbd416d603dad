"""Which Beam engine runs a job, and Beam's options: the job file's, then what follows `--`, all checked.

Beam drops an option it does not know and goes on; here a misspelt one is an error. Beam itself is imported only
where more is given than `runner: local` and `direct_num_workers`: commands that only read must not import it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gapless_pipelines.findings import Finding, InvalidConfiguration, Problem, closest

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

LOCAL = "local"

_FN_API = "FnApiRunner"
_ENGINES = {
    LOCAL: _FN_API,
    _FN_API: _FN_API,
    "DirectRunner": "DirectRunner",
    "PrismRunner": "PrismRunner",
    "DataflowRunner": "DataflowRunner",
    "FlinkRunner": "FlinkRunner",
    "SparkRunner": "SparkRunner",
    "PortableRunner": "PortableRunner",
}
_REFUSED_ENGINES = {
    "DaskRunner": "has neither state nor splittable DoFns, and partitions are read by both",
    "BundleBasedDirectRunner": "fails on splittable DoFns, by which partitions are read",
}
_REFUSED_MODES = {
    "multi_threading": "loses data in Beam 2.77: a thread flushes large stage inputs without a lock",
    "multi_processing": "loses in Beam 2.77 what a reader defers, and the job succeeds",
}
_REFUSED_OPTIONS = {
    "template_location": (
        "makes a classic template, in which every start would be the same run",
        "a Flex Template, which builds the pipeline at each start",
    ),
}
_SECRETS = ("s3_secret_access_key", "s3_session_token", "azure_connection_string")
_BY_THE_WORKERS = "let the workers find it: in their own environment or identity"
_RUNS_HERE = frozenset({_FN_API, "DirectRunner"})
_WORKERS_HERE = frozenset({"LOOPBACK", "EMBEDDED_PYTHON", "beam:env:embedded_python:v1"})
_COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What runs a job. `engine` is `local` or the Beam runner's name; `flags` are for Beam's parser, runner included.

    `workers` is `direct_num_workers` where it was given, None where gapless may choose."""

    engine: str
    flags: tuple[str, ...]
    workers: int | None

    def pipeline_options(self) -> PipelineOptions:
        """The same as Beam takes them. Imports Beam."""
        from apache_beam.options.pipeline_options import PipelineOptions

        return PipelineOptions(list(self.flags))


def engine_options(
    options: Mapping[str, object],
    arguments: Sequence[str] = (),
    *,
    store_url: str | None = None,
    launching: bool = False,
) -> EngineOptions:
    """The engine and its options: the job file's, then the command line's `arguments`; the last one counts.

    `store_url` tells whether every worker can reach the store; None: not asked. `launching`: a job is about to be submitted, so
    that nothing may be missing any more. Raises InvalidConfiguration with
    every problem, where Beam does not take an option or gapless cannot be right under it."""
    chosen, problems = _choose(options, arguments)
    if chosen is not None:
        problems += _refusals(chosen, store_url)
        if launching and not problems:
            from gapless_pipelines.launching import launch_problems

            problems = launch_problems(chosen.runner, chosen.settings)
    if chosen is None or problems:
        raise InvalidConfiguration(_finding(problem, arguments) for problem in problems)
    runner = chosen.runner
    engine = LOCAL if runner == _FN_API else runner
    return EngineOptions(engine, (*chosen.flags, f"--runner={runner}"), chosen.workers)


def option_problems(options: Mapping[str, object], store_url: str | None) -> list[Problem]:
    """Every problem of a job file's `pipeline_options`, by option."""
    chosen, problems = _choose(options, ())
    return problems if chosen is None else problems + _refusals(chosen, store_url)


def workers_elsewhere(engine: EngineOptions) -> bool:
    """Whether workers may run on other machines, where this one's files are not."""
    if engine.engine == LOCAL and not any(flag.startswith("--environment_type") for flag in engine.flags):
        return False
    from gapless_pipelines import beam_flags

    settings = beam_flags.settings_of(engine.flags)
    runner = _runner(str(settings["runner"]))
    return _workers_elsewhere(_Chosen(runner, engine.flags, settings, engine.workers)) is not None


@dataclass(frozen=True, slots=True)
class _Chosen:
    """`settings` holds by name at least what the refusals ask about; `runner` is as Beam names it."""

    runner: str
    flags: tuple[str, ...]
    settings: Mapping[str, object]
    workers: int | None


def _choose(options: Mapping[str, object], arguments: Sequence[str]) -> tuple[_Chosen | None, list[Problem]]:
    """The options as one list of flags; None where Beam would not take them all."""
    if _needs_no_beam(options) and not arguments:
        workers = options.get("direct_num_workers")
        only = () if workers is None else (f"--direct_num_workers={workers}",)
        return _Chosen(_FN_API, only, options, workers if isinstance(workers, int) else None), []
    from gapless_pipelines import beam_flags

    flags, problems = beam_flags.flags_from_mapping(options)
    problems += beam_flags.problems_of_arguments(arguments)
    if problems:
        return None, problems
    flags.extend(arguments)
    settings = beam_flags.settings_of(flags)
    try:
        runner = _runner(str(settings["runner"] or LOCAL))
    except _UnknownEngine as error:
        return None, [error.problem]
    given = any(flag.partition("=")[0] == "--direct_num_workers" for flag in flags)
    workers = settings["direct_num_workers"] if given else None
    return _Chosen(runner, tuple(flags), settings, workers if isinstance(workers, int) else None), []


def _needs_no_beam(options: Mapping[str, object]) -> bool:
    workers = options.get("direct_num_workers", 1)
    return (
        options.keys() <= {"runner", "direct_num_workers"}
        and options.get("runner", LOCAL) == LOCAL
        and isinstance(workers, int)
        and not isinstance(workers, bool)
        and workers > 0
    )


class _UnknownEngine(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def _runner(name: str) -> str:
    """Beam's name of an engine, given as Beam takes it: in any case, with or without `Runner`, or a class's path."""
    short = name.rpartition(".")[2].casefold()
    for refused, reason in _REFUSED_ENGINES.items():
        if short in (refused.casefold(), refused.removesuffix("Runner").casefold()):
            raise _UnknownEngine(Problem("runner", f"{refused} {reason}", _engine_names()))
    if "." in name and not name.startswith("apache_beam."):
        return name
    for known, runner in _ENGINES.items():
        if short in (known.casefold(), known.removesuffix("Runner").casefold()):
            return runner
    close = closest(name, list(_ENGINES))
    allowed = f"did you mean `{close}`? {_engine_names()}" if close else _engine_names()
    raise _UnknownEngine(Problem("runner", f"`{name}` is no engine that gapless runs on", allowed))


def _engine_names() -> str:
    return "allowed: " + ", ".join(name for name in _ENGINES if name != _FN_API)


def _refusals(chosen: _Chosen, store_url: str | None) -> list[Problem]:
    """What Beam would take, but under which gapless would lose data, repeat a run, or show a secret."""
    settings = chosen.settings
    problems = [
        Problem(name, what, allowed)
        for name, (what, allowed) in _REFUSED_OPTIONS.items()
        if settings.get(name)
    ]
    problems += [
        Problem(name, "holds a secret, which would stand in the job's description", _BY_THE_WORKERS)
        for name in _SECRETS
        if settings.get(name)
    ]
    mode = settings.get("direct_running_mode")
    if mode in _REFUSED_MODES:
        allowed = "in_memory, which reads as many partitions at once as direct_num_workers says"
        problems.append(Problem("direct_running_mode", f"{mode} {_REFUSED_MODES[str(mode)]}", allowed))
    elsewhere = _workers_elsewhere(chosen)
    if elsewhere and store_url is not None and store_url.startswith("sqlite"):
        allowed = "a PostgreSQL store (postgresql+psycopg://...), or the runner local"
        problems.append(Problem(elsewhere[0], f"{elsewhere[1]}, where a SQLite file is not", allowed))
    return problems


def _workers_elsewhere(chosen: _Chosen) -> tuple[str, str] | None:
    """The option by which workers may run on other machines, and how; None where all run in or beside this process."""
    environment = chosen.settings.get("environment_type")
    if environment in _WORKERS_HERE:
        return None
    if environment:
        return "environment_type", f"{environment} may put workers on other machines"
    prism_here = chosen.runner == "PrismRunner" and not chosen.settings.get("output_executable_path")
    if chosen.runner in _RUNS_HERE or prism_here:
        return None
    return "runner", f"{chosen.runner} may run workers on other machines"


def _finding(problem: Problem, arguments: Sequence[str]) -> Finding:
    flag = problem.name if problem.name.startswith("-") else f"--{problem.name}"
    for given in (flag, problem.name):
        if any(argument.partition("=")[0] == given for argument in arguments):
            return Finding(_COMMAND_LINE, 0, (given,), problem.what, problem.allowed)
    return Finding("job file", 0, ("pipeline_options", problem.name), problem.what, problem.allowed)
