"""How the process ends after an engine of other processes ran for it.

Beam's client for such an engine leaves threads in native code, of which some still wait for answers when the interpreter takes
itself apart under them: then a run that has ended well would end with a crash. So everything that wants to be told of the
end is told, such as whoever stops the engine's process, and the rest is left to the system.
"""

import atexit
import os
import sys
from typing import Final

_CLIENT: Final = "apache_beam.runners.portability.portable_runner"


def leave(end: SystemExit) -> None:
    """End the process with that status where an engine's client was at work; else return, for the usual end."""
    if _CLIENT not in sys.modules or not (end.code is None or isinstance(end.code, int)):
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        # Nobody reads any more: the interpreter's own end says so by its status.
        return
    os._exit(end.code or 0)
