"""A hostile API in a process of its own, a job that reads it, and the oracle that watches."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import backfill_process
import pytest
from durable_claims import Instant
from hostile_site import SCOPE, HostileSite
from hostile_universe import END, Knobs

from gapless.effects import sweep
from gapless.store import open_store

ENDS_WITHIN = 90.0


class Site(HostileSite):
    """One job whose backfills run in processes of their own."""

    def __init__(self, folder: Path, store_url: str, knobs: Knobs, **job: Any) -> None:
        self._processes: list[BaseProcess] = []
        super().__init__(folder, store_url, knobs, **job)

    def start(self, **options: Any) -> BaseProcess:
        """A backfill of its own process."""
        process = backfill_process.start(self.job, self.log, **options)
        self._processes.append(process)
        return process

    def run(self, **options: Any) -> int:
        """A backfill to its end; its exit code, -9 where it was killed."""
        return self.ended(self.start(**options))

    def ended(self, process: BaseProcess) -> int:
        process.join(ENDS_WITHIN)
        assert process.exitcode is not None, f"the backfill does not end:\n{self.said()}"
        return process.exitcode

    def run_to_the_end(self) -> Instant:
        """Run once more, and expect everything to be complete and true."""
        assert self.run() == 0, self.said()
        now = self.oracle.finish()
        assert now.frontier is not None
        assert now.frontier.position == END
        return now

    def close(self) -> None:
        for process in self._processes:
            if process.is_alive():
                process.kill()
                process.join(30)
        super().close()


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Sites, each with a folder of its own; closed at the end."""
    with _sites(tmp_path) as make:
        yield make


@pytest.fixture(scope="module")
def make_module_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Site]]:
    """The same for all tests of a module."""
    with _sites(tmp_path_factory.mktemp("sites")) as make:
        yield make


@contextmanager
def _sites(root: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def make(store_url: str | None = None, knobs: Knobs | None = None, **job: Any) -> Site:
        folder = root / f"site{len(sites)}"
        folder.mkdir()
        sites.append(Site(folder, store_url or f"sqlite:///{folder}/progress.db", knobs or Knobs(), **job))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def sweep_up() -> Callable[[Site], None]:
    """Removes a site's unlisted files, as `gapless dataset --vacuum` does: no listed one may be among them."""

    def sweep_site(site: Site) -> None:
        if site.oracle.look() is None:
            return
        with closing(open_store(site.store_url)) as store:
            listed = store.sweepable(SCOPE)
        sweep(site.folder / "out", SCOPE, listed=listed.paths, fencing_tokens=listed.fencing_tokens)

    return sweep_site
