"""A Parquet file that grows by row groups and is published whole. Memory holds one row group, never the file."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.effects.files import NewFile, Published
from gapless.effects.protocol import Step, no_step

COMPRESSIONS: Final = ("zstd", "snappy", "gzip", "lz4", "none")
_SAMPLE: Final = 1024
_REPEATS: Final = 4
"""A column is dictionary-encoded where each value of the file's first rows stands there this often on average. For others
the attempt takes a third of the encoding time and is then given up; for small files it is not worth the look."""


class GrowingFile:
    """Used by one thread at a time. Nothing exists on the disk before the first `append`."""

    def __init__(
        self, folder: Path, sequence: int, fencing_token: int, compression: str, step: Step = no_step
    ) -> None:
        self._name: Final = (folder, sequence, fencing_token, step)
        self._compression = compression
        self._file: NewFile | None = None
        self._sink: pa.OSFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._step = step

    def append(self, table: pa.Table, on_encoding: Callable[[], None] = lambda: None) -> None:
        """Write `table` as one row group. Its schema may have columns more than those before: these read as null there.

        `on_encoding` is called right before the long part, which runs without Python's lock. Raises OSError or
        ArrowException; then the file is to be discarded."""
        if self._file is None:
            self._open(table)
        elif table.schema != self._schema:
            self._rewrite(table)
        assert self._writer is not None
        on_encoding()
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._step("row_group_written")

    def publish(self) -> Published:
        """After at least one `append`: make it durable under its final name. Raises as `append` does."""
        assert self._file is not None
        self._close()
        return self._file.publish()

    def discard(self) -> None:
        """Leave nothing behind; never raises."""
        # A footer that cannot be written is that of a file which nobody will read.
        with suppress(OSError, pa.ArrowException):
            self._close()
        if self._file is not None:
            self._file.discard()

    def _open(self, table: pa.Table) -> None:
        file = NewFile(*self._name)
        self._file = file
        self._schema = table.schema
        self._sink = pa.OSFile(str(file.temporary), "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
            table.schema,
            compression=self._compression,
            use_dictionary=_repetitive_columns(table),
        )
        self._step("file_opened")

    def _rewrite(self, table: pa.Table) -> None:
        """Go on in a new file under the wider schema, row group by row group. Seldom: once a column that gets its type."""
        assert self._file is not None
        self._close()
        narrow = self._file
        try:
            with pq.ParquetFile(narrow.temporary) as written:
                self._open(table)
                assert self._writer is not None
                for number in range(written.num_row_groups):
                    group = conformed(written.read_row_group(number), table.schema)
                    self._writer.write_table(group, row_group_size=max(1, group.num_rows))
        finally:
            narrow.discard()

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        sink, self._sink = self._sink, None
        try:
            if writer is not None:
                writer.close()
        finally:
            if writer is not None:
                # Else a writer that could not be closed would try again whenever it is collected.
                writer.is_open = False
            if sink is not None:
                sink.close()


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns of `schema`, null where it has none."""
    held = set(table.schema.names)
    columns = [
        table.column(field.name) if field.name in held else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _repetitive_columns(table: pa.Table) -> list[str]:
    sample = table.slice(0, _SAMPLE)
    if len(sample) < _SAMPLE:
        return []
    return [
        name
        for name, column in zip(sample.schema.names, sample.columns, strict=True)
        if pa.types.is_dictionary(column.type)
        or (
            not pa.types.is_boolean(column.type)
            and pc.count_distinct(column).as_py() * _REPEATS <= len(column)
        )
    ]
