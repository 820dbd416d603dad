"""Further reader processes of a local run, forked once Beam is loaded: Python decodes pages on one processor a process.

Each runs the passes of its own share of the chains, under the same run number. Nothing depends on them: what one leaves unread,
because it died or never got far, the process that forked it reads itself; where two read the same chain after all, one loses
the compare-and-swap. A reader process ends when its parent does, whose end of the pipe closes however it dies.
"""

import os
import pickle
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from gapless.settling.local_run import LocalRun
from gapless.state_format import PartitionProgressCoder
from gapless.updates import PartitionProgress

MOST_PROCESSES = 4
_STOP = b"s"
_LENGTH = struct.Struct("<cI")
_PROGRESS, _FAILED, _PASSES = b"p", b"f", b"n"


def processes_for(chains: int, wanted: int = 0) -> int:
    """How many processes read: `wanted`, else one a processor; no more than chains, and one where forking is not safe."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return min(chains, wanted or min(MOST_PROCESSES, len(os.sched_getaffinity(0))))


@dataclass(slots=True)
class ReaderProcess:
    """A forked reader as its parent sees it. `failure` is what ended it, where it could say so."""

    pid: int
    control: int
    reports: int
    passes: int = 0
    failure: BaseException | None = None
    _listener: threading.Thread | None = field(default=None, repr=False)

    def listen(self, run: LocalRun) -> None:
        """Pass on what it reports, by a thread of its own."""
        self._listener = threading.Thread(target=self._hear, args=(run,), name="gapless-reports", daemon=True)
        self._listener.start()

    def stop(self) -> None:
        """Ask it to finish its pages. May be called by a signal handler."""
        with suppress(OSError):
            os.write(self.control, _STOP)

    def join(self) -> None:
        """Wait for its end. Raises what it raised; one that was killed leaves its chains to others, and raises nothing."""
        os.waitpid(self.pid, 0)
        if self._listener is not None:
            self._listener.join()
        os.close(self.control)
        if self.failure is not None:
            raise self.failure

    def kill(self) -> None:
        """End it now; what it promoted stays."""
        os.kill(self.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)

    def _hear(self, run: LocalRun) -> None:
        coder = PartitionProgressCoder()
        with os.fdopen(self.reports, "rb") as reports:
            while len(head := reports.read(_LENGTH.size)) == _LENGTH.size:
                kind, length = _LENGTH.unpack(head)
                body = reports.read(length)
                if len(body) < length:
                    return
                if kind == _PROGRESS:
                    run.progressed(coder.decode(body))
                elif kind == _PASSES:
                    self.passes = int(body)
                else:
                    self.failure = pickle.loads(body)  # noqa: S301 - written by our own fork


def fork_readers(
    shares: Sequence[frozenset[int]], run: LocalRun, read: Callable[[frozenset[int]], int]
) -> list[ReaderProcess]:
    """One process a share, each of which calls `read` with it and ends. No other thread may run yet."""
    readers: list[ReaderProcess] = []
    for share in shares:
        control_read, control_write = os.pipe()
        reports_read, reports_write = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of any thread of the process; those there are belong to libraries that fork well.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            for reader in readers:
                os.close(reader.control)
            os.close(control_write)
            os.close(reports_read)
            _be_a_reader(control_read, reports_write, run, partial(read, share))
        os.close(control_read)
        os.close(reports_write)
        readers.append(ReaderProcess(pid, control_write, reports_read))
    return readers


def _be_a_reader(control: int, reports: int, run: LocalRun, read: Callable[[], int]) -> None:
    """The life of a reader process. Never returns."""
    status = 1
    try:
        # The terminal signals the whole group; the parent decides, and tells by the pipe.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Thread(target=_obey, args=(control, run), name="gapless-control", daemon=True).start()
        report = _Reports(reports)
        run.on_progress = report.progress
        try:
            report.send(_PASSES, str(read()).encode())
            status = 0
        except BaseException as error:  # noqa: BLE001 - raised again by the parent
            report.send(_FAILED, _pickled(error))
    finally:
        os._exit(status)


def _obey(control: int, run: LocalRun) -> None:
    while word := os.read(control, 1):
        if word == _STOP:
            run.stopping.set()
    # The parent is gone, and with it whoever counts on this run.
    os._exit(1)


class _Reports:
    """The writing end. Readers of one process report through a lock of their run."""

    def __init__(self, reports: int) -> None:
        self._file = os.fdopen(reports, "wb", buffering=0)
        self._coder = PartitionProgressCoder()

    def progress(self, progress: PartitionProgress) -> None:
        self.send(_PROGRESS, self._coder.encode(progress))

    def send(self, kind: bytes, body: bytes) -> None:
        self._file.write(_LENGTH.pack(kind, len(body)) + body)


def _pickled(error: BaseException) -> bytes:
    try:
        encoded = pickle.dumps(error)
        pickle.loads(encoded)  # noqa: S301 - what was just made
    except Exception:  # noqa: BLE001 - whatever keeps it from travelling, its text does
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return encoded
