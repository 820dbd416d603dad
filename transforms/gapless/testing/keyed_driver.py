"""Drives a stateful DoFn without a runner: bundles that commit or roll back, lost workers, timers by a manual clock.

State and timers are those of an engine: per key, in the bytes of their coders, changed as a whole when a bundle ends, and
what they were before where it does not. A worker is an instance of the DoFn: what it remembers by itself survives its bundles,
failed ones too, and is gone with it.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from apache_beam.coders.coders import Coder
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from gapless.testing.manual_clock import ManualClock


class BundleLost(Exception):
    """What a bundle that is told to crash raises; its state is as it was before."""


@dataclass
class _Cell:
    """One state of one key: encoded values; a value state has one at most."""

    coder: Coder
    values: list[bytes] = field(default_factory=list)

    def read(self) -> Any:
        raise NotImplementedError

    def clear(self) -> None:
        self.values.clear()


class _Value(_Cell):
    def read(self) -> Any:
        return self.coder.decode(self.values[0]) if self.values else None

    def write(self, value: Any) -> None:
        self.values[:] = [self.coder.encode(value)]


class _Bag(_Cell):
    def read(self) -> Any:
        return [self.coder.decode(value) for value in self.values]

    def add(self, value: Any) -> None:
        self.values.append(self.coder.encode(value))


@dataclass(frozen=True)
class _Timer:
    due: dict[str, Timestamp]
    name: str

    def set(self, moment: Any) -> None:
        self.due[self.name] = Timestamp.of(moment)

    def clear(self) -> None:
        self.due.pop(self.name, None)


class KeyedDriver:
    """`make` gives a new instance of the DoFn, as each worker has one. `clock` says when processing-time timers are due.

    `outputs` is what the bundles that were committed have emitted, in order."""

    def __init__(self, make: Callable[[], Any], clock: ManualClock | None = None) -> None:
        self._make = make
        self.clock = clock or ManualClock()
        self.outputs: list[Any] = []
        self._states: dict[Any, dict[str, _Cell]] = {}
        self._timers: dict[Any, dict[str, Timestamp]] = {}
        self._dofn: Any = None
        self._parameters: dict[str, list[tuple[str, inspect.Parameter]]] = {}

    def bundle(
        self,
        elements: Iterable[tuple[Any, Any]],
        *,
        timestamp: Timestamp = MIN_TIMESTAMP,
        crash_after: int | None = None,
    ) -> list[Any]:
        """One bundle of keyed elements; what it emitted, once it is committed.

        With `crash_after` it is lost after so many elements: it raises BundleLost, and state and timers are as before. So they
        are where the DoFn raises. The same elements may then come again, or others."""

        def work() -> list[Any]:
            emitted: list[Any] = []
            for number, element in enumerate(elements):
                if number == crash_after:
                    raise BundleLost
                emitted += self._call(self.worker.process, element[0], element, timestamp)
            if crash_after is not None:
                raise BundleLost
            return emitted

        return self._in_bundle(work)

    def fire(self, *, end_of_window: bool = False) -> list[Any]:
        """Fire the timers that are due: processing-time ones by the clock, event-time ones at the end of the window; in one
        bundle. What it emitted."""

        def work() -> list[Any]:
            emitted: list[Any] = []
            for key, name, spec in self._due(end_of_window):
                moment = self._timers[key].pop(name)
                callback = getattr(self.worker, spec._attached_callback.__name__)
                emitted += self._call(callback, key, None, moment)
            return emitted

        return self._in_bundle(work)

    def lose_worker(self, *, in_order: bool = False) -> None:
        """Go on with a new worker. `in_order`: the old one is torn down first; else it is gone, with its connections."""
        dofn, self._dofn = self._dofn, None
        if in_order and dofn is not None:
            dofn.teardown()

    def close(self) -> None:
        """Tear the worker down."""
        self.lose_worker(in_order=True)

    def state_bytes(self, key: Any = None) -> int:
        """Bytes of state, of one key or of all."""
        keys = self._states if key is None else [key]
        return sum(
            len(value)
            for each in keys
            for cell in self._states.get(each, {}).values()
            for value in cell.values
        )

    def state_entries(self, key: Any = None) -> int:
        """How many values the states hold, of one key or of all."""
        keys = self._states if key is None else [key]
        return sum(len(cell.values) for each in keys for cell in self._states.get(each, {}).values())

    @property
    def timers(self) -> int:
        """How many timers are set."""
        return sum(map(len, self._timers.values()))

    def _in_bundle(self, work: Callable[[], list[Any]]) -> list[Any]:
        before = {
            key: {name: list(cell.values) for name, cell in cells.items()}
            for key, cells in self._states.items()
        }
        timers = {key: dict(due) for key, due in self._timers.items()}
        try:
            self.worker.start_bundle()
            emitted = work()
            for value in self.worker.finish_bundle() or ():
                emitted.append(value.value if isinstance(value, WindowedValue) else value)
        except BaseException:
            for key, cells in self._states.items():
                for name, cell in cells.items():
                    cell.values[:] = before.get(key, {}).get(name, [])
            self._timers = timers
            raise
        self.outputs += emitted
        return emitted

    @property
    def worker(self) -> Any:
        """The DoFn that is at work, set up."""
        if self._dofn is None:
            self._dofn = self._make()
            self._dofn.setup()
        return self._dofn

    def _call(self, method: Callable[..., Any], key: Any, element: Any, timestamp: Timestamp) -> list[Any]:
        parameters = self._parameters.get(method.__name__)
        if parameters is None:
            parameters = list(inspect.signature(method).parameters.items())
            self._parameters[method.__name__] = parameters
        given: dict[str, Any] = {}
        for name, parameter in parameters:
            if parameter.default is inspect.Parameter.empty:
                given[name] = element
            else:
                given[name] = self._argument(parameter.default, key, timestamp)
        return list(method(**given) or ())

    def _argument(self, default: Any, key: Any, timestamp: Timestamp) -> Any:
        state: Any = getattr(default, "state_spec", None)
        if state is not None:
            kind = _Bag if "Bag" in type(state).__name__ else _Value
            return self._states.setdefault(key, {}).setdefault(state.name, kind(state.coder))
        timer: Any = getattr(default, "timer_spec", None)
        if timer is not None:
            return _Timer(self._timers.setdefault(key, {}), timer.name)
        named = {"KeyParam": key, "TimestampParam": timestamp, "WindowParam": GlobalWindow()}
        kind_of = getattr(default, "param_id", None)
        return named.get(kind_of, default) if isinstance(kind_of, str) else default

    def _due(self, end_of_window: bool) -> list[tuple[Any, str, Any]]:
        kind = type(self.worker)
        attributes: list[Any] = [getattr(kind, name, None) for name in dir(kind)]
        specs = {spec.name: spec for spec in attributes if hasattr(spec, "time_domain")}
        now = Timestamp.of(self.clock.now().timestamp())
        due = []
        for key, timers in self._timers.items():
            for name, moment in timers.items():
                spec = specs[name]
                if (end_of_window and spec.time_domain == "WATERMARK") or (
                    spec.time_domain == "REAL_TIME" and moment <= now
                ):
                    due.append((key, name, spec))
        return due
