"""Byte formats of what streams carry from one call to the next. Under the rules of `state_format`."""

from typing import Any

from gapless.progress import Bound
from gapless.settling.emitting import ReadingPoint
from gapless.settling.stream_state import StreamState
from gapless.state_format import Deterministic, pack, position_from, position_value, unpack
from gapless.watching import WatchState


class StreamStateCoder(Deterministic):
    """`[point, path, generation, idle, seen, since, rereads, done]`; point: null, or `[token, number, bound, read to, ended]`;
    a bound: null, or `[position, inclusive]`, the position as in a dead letter."""

    def encode(self, value: StreamState) -> bytes:
        return pack(
            _point(value.point),
            value.path,
            value.generation,
            value.idle,
            value.seen,
            value.since,
            value.rereads,
            value.done,
        )

    def decode(self, encoded: bytes) -> StreamState:
        point, *rest = unpack(encoded, "stream's restriction")
        return StreamState(_point_from(point), *rest)


class WatchStateCoder(Deterministic):
    """`[number, highest, [waiting], epoch, done]`."""

    def encode(self, value: WatchState) -> bytes:
        return pack(value.number, value.highest, value.waiting, value.epoch, value.done)

    def decode(self, encoded: bytes) -> WatchState:
        number, highest, waiting, epoch, done = unpack(encoded, "planner's restriction")
        return WatchState(number, highest, tuple(waiting), epoch, done)


def _point(point: ReadingPoint | None) -> list[object] | None:
    if point is None:
        return None
    return [point.token, point.number, _bound(point.bound), _bound(point.read_to), point.ended]


def _point_from(values: list[Any] | None) -> ReadingPoint | None:
    if values is None:
        return None
    token, number, bound, read_to, ended = values
    return ReadingPoint(token, number, _bound_from(bound), _bound_from(read_to), ended)


def _bound(bound: Bound | None) -> list[object] | None:
    return None if bound is None else [position_value(bound.position), bound.inclusive]


def _bound_from(values: list[Any] | None) -> Bound | None:
    return None if values is None else Bound(position_from(values[0]), values[1])
