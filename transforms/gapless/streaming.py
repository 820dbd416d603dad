"""What the transforms of a stream share: its restrictions, its watermark, and which engines it may run on."""

from collections.abc import Generator, Iterator
from typing import Any, Generic, TypeVar

from apache_beam.coders.coders import Coder, TimestampCoder
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.pipeline import Pipeline
from apache_beam.pvalue import PCollection
from apache_beam.transforms.core import RestrictionProvider, WatermarkEstimatorProvider
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamp

from gapless.errors import ConfigurationError
from gapless.polling import Polling
from gapless.progress import Bound, Domain, Position
from gapless.settling.event_time import event_micros
from gapless.settling.stream_state import StreamState
from gapless.stream_format import StreamStateCoder
from gapless.stream_tracker import StateTracker
from gapless.updates import ReadTask

T = TypeVar("T")

_LOSES_WHAT_IS_DEFERRED = ("FnApiRunner", "SwitchingDirectRunner", "DirectRunner", "BundleBasedDirectRunner")


def require_streaming_engine(pipeline: Pipeline) -> None:
    """Raises ConfigurationError on Beam's local runners, except where one drains a stream."""
    runner = pipeline.runner
    name = type(runner).__name__
    if name in _LOSES_WHAT_IS_DEFERRED and not getattr(runner, "_is_drain", False):
        raise ConfigurationError(
            "a stream defers its readers, and this runner loses what is deferred where it has several workers, or polls without"
            " any delay",
            where=f"runner {name}, polling=Polling(...)",
            remedy="run `gapless stream JOB`, which streams on this machine by bounded passes; or another runner: PrismRunner,"
            " FlinkRunner, DataflowRunner",
        )


def require_same_kind(tasks: "PCollection[ReadTask]", polling: Polling | None) -> None:
    """Raises ConfigurationError where a stream of chains is to be read by a batch, which reads each once and leaves it."""
    if polling is None and not tasks.is_bounded:
        raise ConfigurationError(
            "the chains are planned as a stream, and would be read as a batch",
            where="PlanPartitions(polling=...), and a reader without it",
            remedy="give the reader the same polling=Polling(...)",
        )


class Call(Generic[T]):
    """A generator with what it returns: `result`, once it is exhausted."""

    result: Any = None

    def __init__(self, generator: Generator[T, None, Any]) -> None:
        self._generator = generator

    def __iter__(self) -> Iterator[T]:
        self.result = yield from self._generator


def unbounded(collection: "PCollection[T]") -> "PCollection[T]":
    """Says of a collection that it never ends, which Beam does not infer from an unbounded splittable DoFn."""
    collection.is_bounded = False
    return collection


class StreamRestrictions(RestrictionProvider):
    """One chain, read on and on."""

    def initial_restriction(self, element: ReadTask) -> StreamState:
        return StreamState()

    def create_tracker(self, restriction: StreamState) -> StateTracker[StreamState]:
        return StateTracker(restriction)

    def restriction_size(self, element: ReadTask, restriction: StreamState) -> int:
        return 0 if restriction.done else 1

    def restriction_coder(self) -> Coder:
        return StreamStateCoder()

    def truncate(self, element: ReadTask, restriction: StreamState) -> None:
        """A drain drops the rest: the store knows where the chain stands, and what is open is read again by the next run."""
        return


class CertifiedWatermark(WatermarkEstimatorProvider):
    """Begins at the minimum, and stands where it was last set: nothing but a certified bound moves it."""

    def initial_estimator_state(self, element: object, restriction: object) -> Timestamp:
        return MIN_TIMESTAMP

    def estimator_state_coder(self) -> Coder:
        return TimestampCoder()

    def create_watermark_estimator(self, estimator_state: Timestamp) -> ManualWatermarkEstimator:
        return ManualWatermarkEstimator(estimator_state)


class EventTime:
    """The event time of what one call emits, over its watermark estimator.

    Law: the watermark never passes the bound it was raised to, and never goes back; no element is behind it. In a domain without
    instants it stays at the minimum."""

    def __init__(self, watermark: Any, domain: Domain) -> None:
        self._watermark = watermark
        self._domain = domain
        self._raised: Timestamp = watermark.current_watermark()

    def raise_to(self, bound: Bound | None) -> None:
        """Whatever comes from now on lies behind `bound`."""
        instant = None if bound is None else self._instant(bound.position)
        if instant is not None and instant > self._raised:
            self._raised = instant
            self._watermark.set_watermark(instant)

    def stamped(self, element: T, position: Position | None = None) -> "TimestampedValue[T]":
        """The element at its position's event time, or at the watermark where that is later, or there is none."""
        instant = None if position is None else self._instant(position)
        return TimestampedValue(element, self._raised if instant is None else max(instant, self._raised))

    def _instant(self, position: Position) -> Timestamp | None:
        micros = event_micros(self._domain, position)
        if micros is None:
            return None
        return Timestamp(micros=min(max(micros, MIN_TIMESTAMP.micros), MAX_TIMESTAMP.micros - 1))
