"""Drives a splittable DoFn without a runner: through Beam's own wrappers of the tracker, call by call, split where wanted."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apache_beam.runners.sdf_utils import (
    RestrictionTrackerView,
    ThreadsafeRestrictionTracker,
    ThreadsafeWatermarkEstimator,
)


@dataclass
class Called:
    """What one call of `process` came to. `residual` is the restriction that is left, None where it was finished; `delay` in
    seconds from now until it wants to be called again, None where it did not defer; `primary` is what a split left it."""

    emitted: list[Any] = field(default_factory=list)
    residual: Any = None
    delay: float | None = None
    primary: Any = None
    watermark: Any = None
    watermark_state: Any = None


class SplittableDriver:
    """`dofn` is one worker's, set up on the first call."""

    def __init__(self, dofn: Any) -> None:
        self._dofn = dofn
        self._is_up = False
        parameters = inspect.signature(dofn.process).parameters
        self._names = list(parameters)
        self._restriction, self._provider = _parameter(parameters, "restriction_provider")
        self._estimator, self._estimators = _parameter(parameters, "watermark_estimator_provider")

    def initial(self, element: Any) -> Any:
        """The element's initial restriction."""
        return self._provider.initial_restriction(element)

    def call(
        self,
        element: Any,
        restriction: Any = None,
        *,
        watermark_state: Any = None,
        split_after: int | None = None,
        fraction: float = 0.0,
        stop_after: int | None = None,
        on_emitted: Callable[[Any], None] | None = None,
    ) -> Called:
        """One call for an element; `restriction` defaults to the initial one.

        After `split_after` elements a split at `fraction` is asked for, as an engine does at any time. `stop_after` abandons the
        call after so many elements, as a crash does. Raises what `process` raises, and ValueError where it returns with a
        restriction that is neither finished nor deferred."""
        if restriction is None:
            restriction = self.initial(element)
        tracker = ThreadsafeRestrictionTracker(self._provider.create_tracker(restriction))
        given: dict[str, Any] = {self._names[0]: element, self._restriction: RestrictionTrackerView(tracker)}
        estimator = None
        if self._estimator:
            if watermark_state is None:
                watermark_state = self._estimators.initial_estimator_state(element, restriction)
            estimator = ThreadsafeWatermarkEstimator(
                self._estimators.create_watermark_estimator(watermark_state)
            )
            given[self._estimator] = estimator
        called = Called()
        self._start()
        for value in self._values(given):
            called.emitted.append(value)
            if on_emitted is not None:
                on_emitted(value)
            if len(called.emitted) == split_after:
                split = tracker.try_split(fraction)
                if split is not None:
                    called.primary, called.residual = split
            if len(called.emitted) == stop_after:
                return called
        tracker.check_done()
        deferred = tracker.deferred_status()
        if deferred is not None:
            called.residual, delay = deferred
            called.delay = delay.micros / 1_000_000
        if estimator is not None:
            called.watermark, called.watermark_state = (
                estimator.current_watermark(),
                estimator.get_estimator_state(),
            )
        return called

    def close(self) -> None:
        """Tear the DoFn down."""
        if self._is_up:
            self._dofn.teardown()
            self._is_up = False

    def _start(self) -> None:
        if not self._is_up:
            self._dofn.setup()
            self._is_up = True
        self._dofn.start_bundle()

    def _values(self, given: dict[str, Any]) -> Iterator[Any]:
        yield from self._dofn.process(**given) or ()
        self._dofn.finish_bundle()


def _parameter(parameters: Any, attribute: str) -> tuple[str, Any]:
    """The name of the parameter whose default has this attribute, and the attribute; ("", None) where there is none."""
    for name, parameter in parameters.items():
        found = getattr(parameter.default, attribute, None)
        if found is not None:
            return name, found
    return "", None
