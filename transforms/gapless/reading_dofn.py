"""What the DoFns that read chains share: restrictions of a batch, and an end that does not come in the middle of a page."""

from threading import Lock
from typing import Any

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.transforms.core import RestrictionProvider

from gapless.page_restriction import PageRestriction, PageRestrictionTracker
from gapless.state_format import PageRestrictionCoder
from gapless.updates import ReadTask

CLOSING_SECONDS = 60.0
"""How long a teardown waits for the page under way; what is still in use then is left to the end of the process."""


class ChainRestrictions(RestrictionProvider):
    """One chain, read to its end in one call."""

    def initial_restriction(self, element: ReadTask) -> PageRestriction:
        return PageRestriction()

    def create_tracker(self, restriction: PageRestriction) -> PageRestrictionTracker:
        return PageRestrictionTracker(restriction)

    def restriction_size(self, element: ReadTask, restriction: PageRestriction) -> int:
        return 0 if restriction.done else 1

    def restriction_coder(self) -> Coder:
        return PageRestrictionCoder()

    def truncate(self, element: ReadTask, restriction: PageRestriction) -> None:
        """A drain drops the rest: the store knows where the chain stands."""
        return


class ReadingDoFn(beam.DoFn):
    """A reader holds `in_use` while it reads, and asks `closing` before each page; `close` gives back what it has opened.

    Where another worker of the process failed, Beam tears this one down from another thread, while it reads."""

    closing = False
    _chains_before = 0
    _chains = 0

    def setup(self) -> None:
        self.in_use: Any = Lock()

    def start_bundle(self) -> None:
        self._chains_before, self._chains = self._chains, 0

    def among(self) -> int:
        """Count one more chain of this bundle: how many there are at least, as far as can be known."""
        self._chains += 1
        return max(self._chains_before, self._chains)

    def close(self) -> None:
        raise NotImplementedError

    def teardown(self) -> None:
        self.closing = True
        if not self.in_use.acquire(timeout=CLOSING_SECONDS):
            return
        try:
            self.close()
        finally:
            self.in_use.release()
