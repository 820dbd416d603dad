"""Effects that are imported when they are first opened: Arrow loads while the first pages are being fetched.

They stand where a run is put together. Pickled, they are the real ones: a worker elsewhere knows nothing of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gapless.effects.protocol import Effect, EffectSession, SchemaStore
    from gapless.progress import Domain
    from gapless.settling.open_run import DeadLetterEffect, DeadLetterSession


class DeferredEffect:
    """The effect that `make` makes, of which only `target_rows` is known yet, and that it can be replaced."""

    def __init__(self, target_rows: int, replaceable: bool, make: "Callable[[], Effect]") -> None:
        self.target_rows = target_rows
        self.replaceable = replaceable
        self._make = make

    def open(self, scope: str, domain: "Domain", schema: "SchemaStore") -> "EffectSession":
        return self._make().open(scope, domain, schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._make(),)


class DeferredDeadLetters:
    """The same for where dead letters go."""

    def __init__(self, make: "Callable[[], DeadLetterEffect]") -> None:
        self._make = make

    def open(self, scope: str, domain: "Domain") -> "DeadLetterSession":
        return self._make().open(scope, domain)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self._make(),)


def _itself(value: Any) -> Any:
    return value
