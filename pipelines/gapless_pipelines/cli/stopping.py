"""SIGTERM and Ctrl-C during a run: the first asks it to finish the page and promote, the second ends the process at once.

Ending at once loses nothing that was promoted: what a run leaves behind is what its durable rows say.
"""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_FIRST = b"\ngapless: stopping after the page in hand; once more to stop at once\n"
_SECOND = b"\ngapless: stopped at once; what was promoted stays\n"


class Stopping:
    """A context manager that catches the signals while it is open. `requested` is set by the first one.

    `ask` is called by the first (again when it is set later than the signal came), `last_words` by the second, before the
    process ends with 128 + the signal's number. Without `ask` the engine cannot be asked: the first one raises
    KeyboardInterrupt."""

    def __init__(self, last_words: Callable[[], None], end: Callable[[int], object] = os._exit) -> None:
        self.requested = threading.Event()
        self._last_words = last_words
        self._end = end
        self._ask: Callable[[], None] | None = None
        self._cannot_ask = False
        self._before: dict[int, Any] = {}

    def ask_by(self, ask: Callable[[], None]) -> None:
        """From now on the run can be asked to stop; at once where that was requested before."""
        self._ask = ask
        if self.requested.is_set():
            ask()

    def interrupt(self) -> None:
        """From now on the first signal interrupts, and one that came before does it now: the engine cannot be asked."""
        self._cannot_ask = True
        if self.requested.is_set():
            raise KeyboardInterrupt

    def __enter__(self) -> "Stopping":
        self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._cannot_ask:
            raise KeyboardInterrupt
        # A handler runs between any two instructions: it writes past Python's buffers.
        if self.requested.is_set():
            self._last_words()
            os.write(2, _SECOND)
            self._end(128 + number)
            return
        self.requested.set()
        os.write(2, _FIRST)
        if self._ask is not None:
            self._ask()
