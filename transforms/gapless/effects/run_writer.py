"""An open run of pages on its way into a Parquet file: pages are converted here, and encoded in the session's thread."""

from collections.abc import Iterator, Sequence, Set
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from gapless.effects.column_types import column_type
from gapless.effects.columns import Columns
from gapless.effects.envelope import positions_array, positions_text
from gapless.effects.files import explained
from gapless.effects.frozen_schema import EVENT_ID, PARTITION, POSITION, REST, SEQUENCE
from gapless.effects.growing_file import GrowingFile
from gapless.effects.protocol import EventFailure, RunOutput, RunStart
from gapless.errors import EffectError
from gapless.paging.page import Page
from gapless.progress import Domain

if TYPE_CHECKING:
    from gapless.effects.parquet import ParquetSession

ROW_GROUP_ROWS: Final = 32_768
ROW_GROUP_BYTES: Final = 8 << 20
"""A row group is written at this many rows or bytes of Arrow data, whichever comes first. A writer holds one that is being
filled and one that is being written; a process may have tens of writers open."""


@dataclass(frozen=True, slots=True)
class Block:
    """One page, converted: what its rows in the file are made of. `positions` is as `positions_array` gives it."""

    sequence: int
    columns: dict[str, pa.Array]
    rest: pa.Array | None
    positions: pa.Array
    ids: pa.Array

    @property
    def size(self) -> int:
        """Bytes of memory held; an array that serves as two columns counts twice."""
        arrays = [*self.columns.values(), self.positions, self.ids]
        if self.rest is not None:
            arrays.append(self.rest)
        return sum(array.get_total_buffer_size() for array in arrays)


class ParquetRunWriter:
    """See `RunWriter`. What goes wrong behind it, in the encoding thread, is raised by the next `add` or by `finish`."""

    def __init__(self, session: "ParquetSession", start: RunStart) -> None:
        self._session = session
        self._start = start
        self._file: GrowingFile | None = None
        self._encoding: Future[None] | None = None
        self._blocks: list[Block] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._rows = 0
        self._drifted = 0
        self._broken: EffectError | None = None
        self._ended = False

    @property
    def rows(self) -> int:
        return self._rows

    def add(self, page: Page, sequence: int, skip: Set[str] = frozenset()) -> Sequence[EventFailure]:
        """Convert the page. Raises EffectError where the run can no longer be written: it is lost then, as a whole."""
        self._require_usable()
        kept: Sequence[int] = range(len(page.ids))
        if skip:
            kept = [index for index, event_id in enumerate(page.ids) if event_id not in skip]
        if not kept:
            return ()
        ids, positions, rows = (_picked(values, kept) for values in (page.ids, page.positions, page.rows))
        columns = self._session.columns(rows)
        id_array = columns.array_of(ids, pa.string())
        if id_array is None:
            id_array, wrong = column_type("string").convert(ids)
            columns.unwritable.update((index, "its id is no text that a file can hold") for index in wrong)
        if failures := self._failures(columns):
            return [
                EventFailure(kept[index], ids[index], positions[index], reason, code)
                for index, reason, code in failures
            ]
        position_array = positions_array(self._session.domain, positions, columns)
        self._take(Block(sequence, columns.arrays, columns.rest, position_array, id_array), columns.in_rest)
        return ()

    def finish(self) -> RunOutput:
        """The file, durable; without one where no event is in the run. Raises EffectError, and leaves nothing then."""
        self._require_usable()
        if not self._rows:
            self.abandon()
            return RunOutput(None, None, 0)
        with self._losing_all():
            self._await_encoding()
            if self._blocks:
                self._growing_file().append(self._table())
            published = self._growing_file().publish()
        self._end()
        return RunOutput(published.path, published.digest, self._rows, published.size, self._drifted)

    def abandon(self) -> None:
        """Remove what was written. May be called at any time, also again."""
        if self._ended:
            return
        if self._encoding is not None:
            self._encoding.exception()
        if self._file is not None:
            self._file.discard()
        self._end()

    def _failures(self, columns: Columns) -> list[tuple[int, str, str]]:
        """(index, reason, code) of each event that cannot go in, or may not."""
        failed = {}
        if self._session.holds_drift:
            failed = {index: (reason, "schema_drift") for index, reason in columns.drift.items()}
        failed |= {index: (reason, "unsettled_event") for index, reason in columns.unwritable.items()}
        return [(index, *failed[index]) for index in sorted(failed)]

    def _take(self, block: Block, in_rest: int) -> None:
        count = len(block.ids)
        self._blocks.append(block)
        self._held_rows += count
        self._held_bytes += block.size
        if self._held_rows >= ROW_GROUP_ROWS or self._held_bytes >= ROW_GROUP_BYTES:
            with self._losing_all():
                self._await_encoding()
                self._encoding = self._session.encode(partial(self._growing_file().append, self._table()))
        self._rows += count
        self._drifted += in_rest

    def _growing_file(self) -> GrowingFile:
        if self._file is None:
            folder = self._session.folder.of(self._start.partition)
            self._file = GrowingFile(
                folder,
                self._start.sequence,
                self._start.fencing_token,
                self._session.compression,
                self._session.on_step,
            )
        return self._file

    def _table(self) -> pa.Table:
        """The rows held, which are held no longer."""
        session = self._session
        table = assembled(self._blocks, session.arrow_schema(), self._start.partition, session.domain)
        self._blocks = []
        self._held_rows = self._held_bytes = 0
        return table

    def _await_encoding(self) -> None:
        encoding, self._encoding = self._encoding, None
        if encoding is not None:
            encoding.result()

    @contextmanager
    def _losing_all(self) -> Iterator[None]:
        """An error in here ends the run: what was written is removed, and the error says where and what to do."""
        path = self._session.folder.path_of(self._start.partition)
        try:
            with explained(path):
                yield
        except EffectError as error:
            self._broken = error
            self._session.folder.forget(path)
            self.abandon()
            raise

    def _require_usable(self) -> None:
        if self._broken is not None:
            raise self._broken
        if self._ended:
            raise RuntimeError("this run was finished or abandoned")

    def _end(self) -> None:
        self._ended = True
        self._blocks = []
        self._session.ended(self)


def assembled(blocks: Sequence[Block], schema: pa.Schema, partition: str, domain: Domain) -> pa.Table:
    """The rows of all blocks. A block made under a narrower schema reads as null in the columns it lacks."""
    numbers = pa.repeat(pa.scalar(0, pa.int32()), sum(len(block.ids) for block in blocks))
    envelope = {
        PARTITION: [pa.DictionaryArray.from_arrays(numbers, pa.array([partition]))],
        SEQUENCE: [pa.repeat(pa.scalar(block.sequence, pa.int64()), len(block.ids)) for block in blocks],
        POSITION: [positions_text(domain, block.positions) for block in blocks],
        EVENT_ID: [block.ids for block in blocks],
        REST: [_or_nulls(block.rest, block, pa.string()) for block in blocks],
    }
    columns = [
        pa.chunked_array(
            envelope.get(field.name)
            or [_or_nulls(block.columns.get(field.name), block, field.type) for block in blocks]
        )
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _or_nulls(array: pa.Array | None, block: Block, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(block.ids), kind) if array is None else array


def _picked(values: Sequence[Any], kept: Sequence[int]) -> list[Any]:
    if len(kept) == len(values):
        return values if isinstance(values, list) else list(values)
    return [values[index] for index in kept]
