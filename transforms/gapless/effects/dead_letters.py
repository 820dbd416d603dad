"""`ParquetDeadLetters`: the events that were given up on, one file a promoted run, each with all it takes to apply it later."""

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from gapless.effects.files import OutputFolder, explained
from gapless.effects.frozen_schema import ENVELOPE
from gapless.effects.growing_file import GrowingFile
from gapless.effects.lossless_json import NotJson, event_json
from gapless.effects.protocol import DeadLetterRecord, RunOutput, RunStart, Step, no_step
from gapless.effects.settings import local_folder, require_compression, require_text
from gapless.errors import EffectError
from gapless.progress import Domain

_HELD: Final = 4096
_SCHEMA: Final = pa.schema(
    [
        *ENVELOPE,
        pa.field("reason", pa.string()),
        pa.field("payload", pa.string(), metadata={"gapless.type": "json"}),
    ],
    metadata={"gapless.format": "1"},
)


@dataclass(frozen=True)
class ParquetDeadLetters:
    """Writes `path`/<scope>/<partition>/*.parquet. Picklable. Raises ConfigurationError for what cannot be meant so.

    Columns: those of the envelope as in the data files, `reason`, and `payload`, the event's data as JSON."""

    path: str
    compression: str = "zstd"
    on_step: Step = field(default=no_step, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", local_folder("dead_letters.path", self.path))
        require_compression("dead_letters.compression", self.compression)

    def open(self, scope: str, domain: Domain) -> "ParquetDeadLetterSession":
        return ParquetDeadLetterSession(self, scope, domain)


class ParquetDeadLetterSession:
    """The dead letters of a worker. Used by one thread."""

    def __init__(self, effect: ParquetDeadLetters, scope: str, domain: Domain) -> None:
        self._effect = effect
        self._domain = domain
        self._folder = OutputFolder(effect.path, scope)
        self._writers: set[ParquetDeadLetterWriter] = set()

    def begin(self, start: RunStart) -> "ParquetDeadLetterWriter":
        """Raises EffectError for a partition whose id no file can hold."""
        require_text("the partition's id", start.partition)
        writer = ParquetDeadLetterWriter(self._effect, self._folder, self._domain, start)
        self._writers = {open_writer for open_writer in self._writers if not open_writer.ended} | {writer}
        return writer

    def close(self) -> None:
        """Abandons what is still open."""
        for writer in self._writers:
            writer.abandon()


class ParquetDeadLetterWriter:
    """The dead letters of one run."""

    def __init__(
        self, effect: ParquetDeadLetters, folder: OutputFolder, domain: Domain, start: RunStart
    ) -> None:
        self._effect = effect
        self._folder = folder
        self._domain = domain
        self._start = start
        self._file: GrowingFile | None = None
        self._held: list[dict[str, object]] = []
        self._rows = 0
        self._broken: EffectError | None = None
        self.ended = False

    def add(self, record: DeadLetterRecord) -> str:
        """Keep one; its payload as JSON text. Raises EffectError; where the file itself fails, `finish` raises it too."""
        require_text("an event's id", record.event_id)
        payload = _payload(record)
        self._held.append(
            {
                "_partition": record.partition,
                "_sequence": record.sequence,
                "_position": self._domain.text(record.position),
                "_event_id": record.event_id,
                "reason": record.reason.encode("utf-8", "backslashreplace").decode(),
                "payload": payload,
            }
        )
        self._rows += 1
        if len(self._held) >= _HELD:
            self._write()
        return payload

    def finish(self) -> RunOutput:
        """The file, durable; without one where there is no dead letter. Raises EffectError, and leaves nothing then."""
        if self._broken is not None:
            raise self._broken
        if not self._rows:
            self.abandon()
            return RunOutput(None, None, 0)
        if self._held:
            self._write()
        assert self._file is not None
        try:
            with explained(self._folder.path_of(self._start.partition)):
                published = self._file.publish()
        except EffectError:
            self.abandon()
            raise
        self.ended = True
        return RunOutput(published.path, published.digest, self._rows, published.size)

    def abandon(self) -> None:
        """Remove what was written. May be called at any time, also again; never raises."""
        if self._file is not None and not self.ended:
            self._file.discard()
        self.ended = True
        self._held = []

    def _write(self) -> None:
        if self._file is None:
            folder = self._folder.of(self._start.partition)
            self._file = GrowingFile(
                folder,
                self._start.sequence,
                self._start.fencing_token,
                self._effect.compression,
                self._effect.on_step,
            )
        path = self._folder.path_of(self._start.partition)
        try:
            with explained(path):
                self._file.append(pa.Table.from_pylist(self._held, schema=_SCHEMA))
        except EffectError as error:
            self._broken = error
            self._folder.forget(path)
            self.abandon()
            raise
        self._held = []


def _payload(record: DeadLetterRecord) -> str:
    try:
        return event_json(record.row)
    except NotJson as error:
        raise EffectError(
            f"event {record.event_id} cannot be kept as a dead letter: {error.what}", event_id=record.event_id
        ) from error
