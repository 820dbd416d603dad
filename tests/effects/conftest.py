"""What the tests of effects share: pages made of rows, and files read back as a consumer would."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gapless.effects import FrozenSchema, ParquetEffect, RunOutput, RunStart, open_dataset, source_row
from gapless.effects.parquet import ParquetSession
from gapless.paging.page import Page
from gapless.progress import Domain, IntegerDomain, Position
from gapless.testing.memory_schema_store import MemorySchemaStore


def page_of(
    rows: Sequence[Mapping[str, Any]],
    ids: Sequence[str] | None = None,
    positions: Sequence[Position] | None = None,
) -> Page:
    """A page of these rows; ids e0, e1, ... and positions 0, 1, ... where none are given."""
    return Page(
        start_token=None,
        next_token="more",
        end=False,
        ids=ids if ids is not None else [f"e{index}" for index in range(len(rows))],
        positions=positions if positions is not None else list(range(len(rows))),
        rows=rows,
    )


class Bench:
    """One scope's effect over one folder and one schema store, and everything it has published."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemorySchemaStore()
        self.outputs: list[RunOutput] = []
        self._sessions: list[ParquetSession] = []

    def open(self, domain: Domain | None = None, **settings: Any) -> ParquetSession:
        """A worker."""
        effect = ParquetEffect(str(self.folder), **settings)
        session = effect.open("orders", domain or IntegerDomain(), self.store)
        self._sessions.append(session)
        return session

    def write(self, *pages: Page, session: ParquetSession | None = None, partition: str = "p0") -> RunOutput:
        """One run of these pages; none of their events may fail."""
        writer = (session or self.open()).begin(RunStart(1, partition, 0, 1))
        for sequence, page in enumerate(pages):
            assert writer.add(page, sequence) == ()
        output = writer.finish()
        self.outputs.append(output)
        return output

    @property
    def schema(self) -> FrozenSchema:
        text = self.store.frozen()
        assert text is not None
        return FrozenSchema.from_text(text)

    def records(self) -> list[dict[str, Any]]:
        """Every row of every listed file, as one data set."""
        paths = [output.path for output in self.outputs if output.path is not None]
        records: list[dict[str, Any]] = open_dataset(paths, self.schema).to_table().to_pylist()
        return records

    def rows(self) -> list[dict[str, Any]]:
        """The rows as the source sent them, without keys that were null."""
        return [source_row(record, self.schema) for record in self.records()]

    def files(self) -> list[str]:
        """Every file below the folder, hidden ones too, by relative path."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def close(self) -> None:
        for session in self._sessions:
            session.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "out")
    yield made
    made.close()


@pytest.fixture
def make_page() -> Callable[..., Page]:
    return page_of


@pytest.fixture
def make_bench() -> Iterator[Callable[[Path], Bench]]:
    """For tests that need one a round (property tests)."""
    made: list[Bench] = []

    def make(folder: Path) -> Bench:
        made.append(Bench(folder))
        return made[-1]

    yield make
    for each in made:
        each.close()
