"""A `SchemaStore` in memory: for tests of effects, and for looking at pages without a store."""

from threading import Lock


class MemorySchemaStore:
    """What the store does, atomically, for one scope of one process."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._lock = Lock()

    def frozen(self) -> str | None:
        return self._text

    def freeze(self, proposal: str) -> str:
        with self._lock:
            if self._text is None:
                self._text = proposal
            return self._text

    def widen(self, expected: str, proposal: str) -> str:
        """Raises LookupError where nothing is frozen yet."""
        with self._lock:
            if self._text is None:
                raise LookupError("there is no schema to widen")
            if self._text == expected:
                self._text = proposal
            return self._text
