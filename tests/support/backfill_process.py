"""Real backfills in processes of their own, which a test kills, stops and starts again.

Processes are forked from a server that has imported Beam once, so that each costs tenths of a second and not seconds:

    process = start(job, log, at=At("committed", 3))
    process.join(); process.exitcode

A run's exit code is its exit status; 2 for an error of the store or the configuration, as the command line has it, 1 for others.
"""

import ctypes
import errno
import multiprocessing
import os
import resource
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from uuid import UUID

import broken_product

_PRELOADED = [
    "apache_beam",
    "gapless_pipelines.backfill",
    "gapless_pipelines.job",
    "gapless_pipelines.local_passes",
    "gapless.effects.parquet",
    "gapless.effects.dead_letters",
    "gapless.paging.http",
    "gapless.store.store",
    "alembic.command",
    "sqlalchemy.dialects.sqlite",
    "psycopg",
    "backfill_process",
]

SETTLING_STEPS = ("taken", "fetched", "applied", "durable", "committed", "published")
FILE_STEPS = (
    "file_opened",
    "row_group_written",
    "file_written",
    "before_rename",
    "after_rename",
    "file_durable",
)


@dataclass(frozen=True)
class At:
    """What happens at the n-th time `step` is reached, counted over the whole process, and (`times`) at those after it.

    `kill`: SIGKILL. `stop`: SIGSTOP, after `mark` was written. `no_space`: an OSError, as on a full disk."""

    step: str
    nth: int = 1
    action: str = "kill"
    times: int = 1
    mark: str = ""

    def happen(self) -> None:
        if self.action == "no_space":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.action == "stop":
            Path(self.mark).touch()
        os.kill(os.getpid(), signal.SIGSTOP if self.action == "stop" else signal.SIGKILL)


@dataclass(frozen=True)
class Setup:
    """What is special about one process: what happens to it, the largest file it may write (bytes), whether file permissions
    bind it although it is root's, the run id, where it is to be a twin of another one's run, and what is broken in the product
    itself, by a name of `broken_product`. `processes` read, all but the first of them forked."""

    job: str
    log: str
    at: At | None = None
    largest_file: int | None = None
    as_anybody: bool = False
    breakage: str | None = None
    processes: int = 1
    run_id: str | None = None


_reached = 0
_at: At | None = None
_counting = threading.Lock()


def on_step(name: str) -> None:
    """Called at every step of settling and of making a file durable, by whatever thread is there.

    It is looked up by name in each process, so that pickled transforms find this one, and count together."""
    global _reached
    if _at is None or name != _at.step:
        return
    with _counting:
        _reached += 1
        due = _at.nth <= _reached < _at.nth + _at.times
    if due:
        _at.happen()


def start(job: Path, log: Path, **options: Any) -> BaseProcess:
    """Begin a backfill of `job`; its output goes to `log`."""
    return begin(run_job, Setup(str(job), str(log), **options))


def begin(work: Callable[[Setup], int], setup: Setup) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_main, args=(work, setup), daemon=True)
    process.start()
    return process


def _main(work: Callable[[Setup], int], setup: Setup) -> None:
    out = os.open(setup.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(out, stream)
    status = 1
    try:
        status = work(setup)
    except BaseException:  # noqa: BLE001 - shown in the log; the exit code tells the test
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # Not sys.exit: what a daemon thread is doing in an answer that never comes is nobody's business now.
        os._exit(status)


def run_job(setup: Setup) -> int:
    from gapless.errors import GaplessError
    from gapless_pipelines.backfill import Backfill, run_backfill
    from gapless_pipelines.job import load_job

    _limit(setup)
    global _at
    _at = setup.at
    job = load_job(setup.job)
    effect = replace(job.effect(), on_step=on_step)
    backfill = Backfill(
        source=job.source(),
        effect=effect,
        store=job.store.ref(),
        engine=job.engine(),
        dead_letters=job.dead_letters(),
        retry=job.retry(),
        membership=job.membership(),
        readers=job.config.source.client.connections,
        processes=setup.processes,
        on_step=on_step,
    )
    try:
        outcome = run_backfill(backfill)
    except GaplessError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_status
    return outcome.exit_status


def _limit(setup: Setup) -> None:
    import gapless_pipelines.backfill

    if setup.largest_file is not None:
        # Python ignores SIGXFSZ: a write beyond the limit is an OSError, as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (setup.largest_file, setup.largest_file))
    if setup.as_anybody and os.geteuid() == 0:
        _drop_the_right_to_ignore_permissions()
    if setup.breakage is not None:
        getattr(broken_product, setup.breakage)()
    if setup.run_id is not None:
        run_id = UUID(setup.run_id)
        gapless_pipelines.backfill.uuid4 = lambda: run_id  # type: ignore[attr-defined]


def _drop_the_right_to_ignore_permissions() -> None:
    """Linux: root without CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER is bound by permissions like everybody."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    capabilities = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capget(header, capabilities) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    capabilities[0] &= ~0b1110
    if libc.capset(header, capabilities) != 0:
        raise OSError(ctypes.get_errno(), "capset")
