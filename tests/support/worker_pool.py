"""A pool that starts worker processes for a job: Beam's own, as it is started on a machine of a cluster. One for each job."""

import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import backfill_process
import engine_pipeline

LISTENS_WITHIN = 60.0


@dataclass(frozen=True)
class PoolWork:
    port: int
    log: str
    environment: Mapping[str, str]


class WorkerPool:
    """`port` is where it listens on this machine. Every worker's process id is known from the moment it is started.

    The pool is forked from the server that the tests' processes are forked from; its workers are new interpreters."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._started = folder / "workers"
        self._started.touch()
        self.port = free_port()
        given = {**worker_environment(folder), **environment}
        work = PoolWork(self.port, str(folder / "pool.log"), given)
        self._process: BaseProcess = backfill_process.begin(serve, work)  # type: ignore[arg-type]

    def wait_until_it_listens(self) -> None:
        end = time.monotonic() + LISTENS_WITHIN
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            assert self._process.is_alive(), "the pool of workers has ended"
            assert time.monotonic() < end, "the pool of workers does not listen"
            time.sleep(0.05)

    def workers(self) -> list[int]:
        """Process ids of all workers that were ever started, the latest last; they are children of the pool's until it ends."""
        return [int(line) for line in self._started.read_text().split()]

    def close(self) -> None:
        """End it and its workers."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.join(30)


def serve(work: PoolWork) -> int:
    os.setsid()
    os.environ.update(work.environment)
    from apache_beam.runners.worker import worker_pool_main

    worker_pool_main.main([f"--service_port={work.port}"])
    return 0


def worker_environment(folder: Path) -> dict[str, str]:
    """Where Beam finds the `python` that it starts workers by, which writes its process id down first, and the tests' modules."""
    shims = folder / "bin"
    shims.mkdir(exist_ok=True)
    shim = shims / "python"
    shim.write_text(f'#!/bin/sh\necho $$ >>"{folder / "workers"}"\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    return {
        "PATH": os.pathsep.join((str(shims), os.environ.get("PATH", ""))),
        "PYTHONPATH": os.pathsep.join((str(Path(engine_pipeline.__file__).parent), *_python_path())),
    }


def _python_path() -> list[str]:
    return [given] if (given := os.environ.get("PYTHONPATH")) else []


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port
