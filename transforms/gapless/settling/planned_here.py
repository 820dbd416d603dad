"""Whether a chain was planned in this store, and for this source.

Chains are numbered by their store: the same number is somebody else's chain in another one. Whoever reads a plan with another
source, or promotes pages in another store, would prove a frontier by events that are none of it.
"""

from gapless.errors import ConfigurationError
from gapless.paging.source import Source
from gapless.store import Store
from gapless.updates import ReadTask


class PlannedHere:
    """Asked for each task; what is known of a run is kept. Used by one thread."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str, int]] = set()

    def require(self, task: ReadTask, store: Store, source: Source | None = None) -> None:
        """Before a chain is taken, or a page promoted.

        Raises ConfigurationError where the source is of another scope; StoreError where the run is none of this store's."""
        if source is not None and source.scope != task.scope:
            raise another_source(task.scope, source.scope)
        run = (task.scope, task.run_id, task.fencing_token)
        if run not in self._known:
            store.require_run(*run)
            self._known.add(run)


def another_source(planned: str, read: str) -> ConfigurationError:
    """Of a plan of scope `planned` that is to be read from a source of scope `read`."""
    which = f"of scope {read!r}" if read != planned else "another one under the same name"
    return ConfigurationError(
        f"the chains of scope {planned!r} were planned for another source than the one to be read, which is {which}",
        remedy="give PlanPartitions and the transform that reads the same source",
    )
