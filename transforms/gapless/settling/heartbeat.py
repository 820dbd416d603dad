"""Signs of life of a run, from every process that reads for it: one thread a process and run, while readers work.

    with beating(store, run_id):
        ...                        read

The thread never keeps a process alive and never ends a reader: where the store cannot be told, the next beat tries again. What
it says changes nothing but the time in the run's row, and nothing at all of a run that has ended.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gapless.store_ref import StoreRef

BEAT_SECONDS = 5.0
"""A reader of the store takes a run for lost after a minute of silence."""

LINGER_SECONDS = 30.0
"""Readers come and go, by bundles and slices: so long a heart goes on without one, unless the run has ended."""

_LOGGER = logging.getLogger(__name__)


@contextmanager
def beating(store: StoreRef, run_id: str, *, pause: float = 0.0, to_the_end: bool = False) -> Iterator[None]:
    """The run gives signs of life while this is open, and for `LINGER_SECONDS` after it.

    `pause`: how long a stream may leave between two polls, in seconds; they come on top. `to_the_end`: when this closes the run
    is over in this process, and so is its heart, at once."""
    heart = _joined(store, run_id, pause)
    try:
        yield
    finally:
        heart.leave(for_ever=to_the_end)


class _Heart:
    """Beats for one run of this process. All that changes is guarded by `_lock`."""

    def __init__(self, store: StoreRef, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._users = 0
        self._left_at = 0.0
        self._linger = LINGER_SECONDS
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"gapless-heartbeat-{run_id}", daemon=True)

    def join(self, pause: float) -> None:
        self._users += 1
        self._linger = max(self._linger, LINGER_SECONDS + pause)
        if self._users == 1 and self._thread.ident is None:
            self._thread.start()

    def leave(self, *, for_ever: bool) -> None:
        with _lock:
            self._users -= 1
            self._left_at = time.monotonic()
            if not for_ever or self._users > 0:
                return
            _hearts.pop((self._store, self._run_id), None)
            self._over.set()
        # A fork right afterwards must not meet its connection; a store that does not answer keeps nobody longer than this.
        self._thread.join(BEAT_SECONDS)

    def _live(self) -> None:
        alive = True
        while not self._over.is_set() and not self._forsaken(alive=alive):
            alive = self._beat()
            self._over.wait(BEAT_SECONDS)

    def _forsaken(self, *, alive: bool) -> bool:
        with _lock:
            left_for = time.monotonic() - self._left_at
            forsaken = self._users == 0 and (not alive or left_for > self._linger)
            if forsaken:
                _hearts.pop((self._store, self._run_id), None)
            return forsaken

    def _beat(self) -> bool:
        """Whether the run has not been ended, as far as is known."""
        try:
            with self._store.open() as store:
                return store.heartbeat(self._run_id)
        except Exception as error:  # noqa: BLE001 - whatever keeps the store from hearing of it, reading goes on
            _LOGGER.warning("no sign of life was given: %s", error)
            return True


_hearts: dict[tuple[StoreRef, str], _Heart] = {}
_lock = threading.Lock()


def _joined(store: StoreRef, run_id: str, pause: float) -> _Heart:
    with _lock:
        heart = _hearts.setdefault((store, run_id), _Heart(store, run_id))
        heart.join(pause)
        return heart


def _in_a_child() -> None:
    """Threads do not survive a fork: readers of the child begin a heart of their own."""
    global _lock
    _lock = threading.Lock()
    _hearts.clear()


os.register_at_fork(after_in_child=_in_a_child)
