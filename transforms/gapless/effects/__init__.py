"""Effects: what is done with the events of a page, durably, before the page counts.

`ParquetEffect` and `ParquetDeadLetters` write files; the protocol says what an effect of one's own implements. Names are
resolved when they are first used, so that whoever wants the protocol alone does not load Arrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gapless.effects.protocol import (
    DeadLetterRecord,
    Effect,
    EffectSession,
    EventFailure,
    RunOutput,
    RunStart,
    RunWriter,
    SchemaStore,
)

if TYPE_CHECKING:
    from gapless.effects.dead_letters import ParquetDeadLetters
    from gapless.effects.files import file_digest, sweep
    from gapless.effects.frozen_schema import FrozenSchema, infer_schema
    from gapless.effects.parquet import ParquetEffect
    from gapless.effects.reading import open_dataset, source_row

__all__ = [
    "DeadLetterRecord",
    "Effect",
    "EffectSession",
    "EventFailure",
    "FrozenSchema",
    "ParquetDeadLetters",
    "ParquetEffect",
    "RunOutput",
    "RunStart",
    "RunWriter",
    "SchemaStore",
    "file_digest",
    "infer_schema",
    "open_dataset",
    "source_row",
    "sweep",
]

_WHERE = {
    "FrozenSchema": "frozen_schema",
    "ParquetDeadLetters": "dead_letters",
    "ParquetEffect": "parquet",
    "file_digest": "files",
    "infer_schema": "frozen_schema",
    "open_dataset": "reading",
    "source_row": "reading",
    "sweep": "files",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
