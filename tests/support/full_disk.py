"""A disk that is full, for the statements inside a `with` alone.

The limit is the process's, so it must not stand while pytest reports: a test run whose output goes to a file that is
already longer than the limit could not write its next dot, and would end there.
"""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_file_may_grow_beyond(size: int) -> Iterator[None]:
    """The system refuses to write behind `size` bytes of any file, as a full disk would, in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
