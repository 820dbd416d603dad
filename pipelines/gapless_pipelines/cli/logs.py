"""What libraries log and warn: kept off the terminal; with `--debug` it goes to a file, and tracebacks are shown.

Beam, urllib3 and others log while they work, which a reader of progress lines cannot use. What matters to a user is an error
of gapless, or stands in the store.
"""

import logging
import os
from pathlib import Path

LOG_FILE = "gapless.log"

_debug_log: list[Path] = []


def keep_quiet() -> None:
    """For a process that is a command: no log record and no warning reaches the terminal unasked."""
    root = logging.getLogger()
    root.addHandler(logging.NullHandler())
    logging.captureWarnings(True)
    # gRPC's C core writes to the terminal by itself.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def begin_debugging() -> None:
    """Write what is logged, warnings and above, to `gapless.log` in the current folder."""
    if _debug_log:
        return
    path = Path.cwd() / LOG_FILE
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    _debug_log.append(path)


def debug_log() -> Path | None:
    """The log file of this process; None without `--debug`."""
    return _debug_log[0] if _debug_log else None
