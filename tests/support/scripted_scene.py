"""A scripted source of ten partitions, a Parquet effect, a store, and the oracle that judges what is durable."""

from contextlib import closing
from pathlib import Path

from scripted_universe import SCOPE, end_of, source_of, universe
from truth_oracle import TruthOracle

from gapless import ParquetEffect
from gapless.progress import Bound
from gapless.store import Store, open_store
from gapless.store.records import Snapshot


class Scene:
    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.universe = universe()
        self.source = source_of(self.universe)
        self.effect = ParquetEffect(str(folder / "out"), target_rows=10)
        self.end: Bound = end_of(self.universe)
        self.use(url)

    def use(self, url: str) -> None:
        """Go on with another store."""
        self.url = url
        self.oracle = TruthOracle(url, SCOPE, self.universe)

    def open(self) -> Store:
        return open_store(self.url)

    def snapshot(self) -> Snapshot:
        with closing(self.open()) as store:
            return store.snapshot(SCOPE)

    def judge_the_end(self) -> None:
        """Everything is durable, once, and published."""
        now = self.oracle.finish()
        assert now.frontier == self.end
        assert sum(chain.events for chain in now.chains.values()) == sum(map(len, self.universe.values()))
