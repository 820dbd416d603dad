"""What happens to a process at a step of the page barrier or of delivering; its environment says so, and so reaches workers.

ENGINE_DIE_AT=STEP:N:MARKER     SIGKILL at the n-th step of that name, unless MARKER is there; it is made before
"""

import os
import signal
import threading
from itertools import count
from pathlib import Path
from typing import Any

DIE_AT = "ENGINE_DIE_AT"
NOTE_SPLITS = "ENGINE_NOTE_SPLITS"

_steps = count(1)
_counting = threading.Lock()


def on_step(name: str) -> None:
    """Looked up by name where transforms are unpickled."""
    step, _, rest = os.environ.get(DIE_AT, "").partition(":")
    if name != step:
        return
    nth, _, marker = rest.partition(":")
    with _counting:
        if next(_steps) == int(nth) and not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)


def note_splits() -> None:
    """From now on, where the environment says so."""
    file = os.environ.get(NOTE_SPLITS)
    if file is None:
        return
    from gapless.page_restriction import PageRestrictionTracker

    split = PageRestrictionTracker.try_split

    def noted(tracker: PageRestrictionTracker, fraction: float) -> Any:
        given = split(tracker, fraction)
        with Path(file).open("a") as out:
            out.write(f"{fraction} {given}\n")
        return given

    PageRestrictionTracker.try_split = noted  # type: ignore[method-assign]
