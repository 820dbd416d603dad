"""`ParquetEffect`: one Parquet file a promoted run of pages, its rows complete to the last field."""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from gapless.effects.columns import ColumnBuilder, Columns, NullsEnd, Rows
from gapless.effects.files import OutputFolder
from gapless.effects.frozen_schema import FrozenSchema, ScopeSchema, canonical_types
from gapless.effects.protocol import RunStart, SchemaStore, Step, no_step
from gapless.effects.run_writer import ParquetRunWriter
from gapless.effects.settings import local_folder, require_compression, require_text
from gapless.errors import ConfigurationError
from gapless.progress import Domain


@dataclass(frozen=True)
class ParquetEffect:
    """Writes `path`/<scope>/<partition>/*.parquet. Picklable. Raises ConfigurationError for what cannot be meant so.

    `path` is a local folder, made absolute here. `target_rows` ends a run of pages, and so a file. `schema`: column ->
    type name, for the columns that are not to be inferred. `on_drift`: what happens to an event of which something does
    not fit the schema: `rest` keeps that in the column `_rest`, `hold` holds the partition. `on_step` is for tests."""

    path: str
    target_rows: int = 1_000_000
    compression: str = "zstd"
    schema: Mapping[str, str] | None = None
    on_drift: str = "rest"
    on_step: Step = field(default=no_step, repr=False, compare=False)

    @property
    def replaceable(self) -> bool:
        """The manifest says which files count: another reading's can take their place."""
        return True

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", local_folder("effect.path", self.path))
        object.__setattr__(self, "schema", canonical_types(self.schema or {}))
        require_compression("effect.compression", self.compression)
        if type(self.target_rows) is not int or self.target_rows < 1:
            raise ConfigurationError(
                f"effect.target_rows: {self.target_rows!r} is no positive number of rows"
            )
        if self.on_drift not in ("rest", "hold"):
            raise ConfigurationError(
                f"on_drift: {self.on_drift!r} is unknown", remedy="allowed are rest, hold"
            )

    def open(self, scope: str, domain: Domain, schema: SchemaStore) -> "ParquetSession":
        """Raises ConfigurationError where the declared schema contradicts the frozen one, and StoreError."""
        return ParquetSession(self, scope, domain, ScopeSchema(schema, self.schema or {}))


class ParquetSession:
    """The effect on a worker: the schema as known, and one thread that encodes while the caller converts the next pages."""

    def __init__(self, effect: ParquetEffect, scope: str, domain: Domain, schema: ScopeSchema) -> None:
        self.domain: Final = domain
        self.folder: Final = OutputFolder(effect.path, scope)
        self.compression: Final = effect.compression
        self.holds_drift: Final = effect.on_drift == "hold"
        self.on_step: Final[Step] = effect.on_step
        self._scope = scope
        self._schema = schema
        self._builder: ColumnBuilder | None = None
        self._arrow_schema: pa.Schema | None = None
        self._encoder = ThreadPoolExecutor(1, thread_name_prefix="gapless-parquet")
        self._writers: set[ParquetRunWriter] = set()

    def begin(self, start: RunStart) -> ParquetRunWriter:
        """Raises EffectError for a partition whose id no file can hold."""
        require_text("the partition's id", start.partition)
        writer = ParquetRunWriter(self, start)
        self._writers.add(writer)
        return writer

    def close(self) -> None:
        """Abandons what is still open."""
        for writer in tuple(self._writers):
            writer.abandon()
        self._encoder.shutdown()

    def columns(self, rows: Rows) -> Columns:
        """Convert under the scope's schema, which is frozen with the first rows ever seen. Raises EffectError, StoreError."""
        builder = self._builder or self._use(self._schema.for_rows(rows))
        while True:
            try:
                return builder.build(rows)
            except NullsEnd as found:
                builder = self._use(self._schema.widen(found.types))

    def arrow_schema(self) -> pa.Schema:
        """The schema of files begun now. Rows must have been seen."""
        assert self._arrow_schema is not None
        return self._arrow_schema

    def encode(self, append: Callable[[Callable[[], None]], None]) -> "Future[None]":
        """Run `append` in the encoding thread. Returns once it has called what it is given, or failed.

        Until then the caller waits on purpose: a thread that competes for Python's lock with one that converts page after
        page would get it now and then only, and the encoder would sleep when it should begin."""
        begun = threading.Event()

        def work() -> None:
            try:
                append(begun.set)
            finally:
                begun.set()
            # Arrays are made in one thread and freed in another; without this the allocator keeps twice what is in use.
            pa.default_memory_pool().release_unused()

        future = self._encoder.submit(work)
        begun.wait()
        return future

    def ended(self, writer: ParquetRunWriter) -> None:
        self._writers.discard(writer)

    def _use(self, schema: FrozenSchema) -> ColumnBuilder:
        self._arrow_schema = schema.arrow(self._scope)
        self._builder = ColumnBuilder(schema)
        return self._builder
