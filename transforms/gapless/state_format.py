"""Every byte format that Beam may persist or ship between versions: one coder a type, deterministic, pinned by tests.

A value is one version byte and a msgpack array. Bounds travel as order-preserving keys beside their domain, so that no
integer is cut and equal values have equal bytes. Text that is no UTF-8 (half of a surrogate pair, in the name of a file that
an error tells of) is an extension of type 1: its code points as UTF-8 would write them. A format is never changed: a new one
gets the next version byte, and the old one stays readable. Changes stand in CHANGELOG.md under "State format".
"""

import json
from functools import lru_cache
from typing import Any

import msgspec
from apache_beam.coders.coders import Coder
from apache_beam.coders.typecoders import registry
from apache_beam.io.restriction_trackers import OffsetRange

from gapless.errors import StoreNewer
from gapless.page_restriction import PageRestriction
from gapless.progress import Bound, ChainState, Domain, Position, domain_from, keys
from gapless.progress_merge import FrontierHint, MembersSeen
from gapless.store.records import PARTITION, Blocker, DeadLetter
from gapless.updates import FrontierUpdate, PartitionProgress, PlannedTasks, PlanRequest, ReadTask

_VERSION = b"\x01"


_HALF_TEXT = 1


def pack(*values: object) -> bytes:
    try:
        return _VERSION + msgspec.msgpack.encode(values)
    except UnicodeEncodeError:
        return _VERSION + msgspec.msgpack.encode(_with_half_text(values))


def _with_half_text(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_with_half_text(item) for item in value]
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return msgspec.msgpack.Ext(_HALF_TEXT, value.encode("utf-8", "surrogatepass"))
    return value


def _half_text(code: int, data: memoryview) -> str:
    if code != _HALF_TEXT:
        raise ValueError(f"extension {code} is none of this state format")
    return bytes(data).decode("utf-8", "surrogatepass")


_decode = msgspec.msgpack.Decoder(ext_hook=_half_text).decode


def unpack(encoded: bytes, what: str) -> list[Any]:
    if encoded[:1] != _VERSION:
        raise StoreNewer(
            f"a {what} in state format {encoded[:1].hex() or 'none'}; this version reads 01",
            remedy="drain or cancel the job and start it with the version that wrote it, or a newer one",
        )
    values: list[Any] = _decode(encoded[1:])
    return values


def domain_text(domain: Domain) -> str:
    """A domain as canonical JSON: equal domains have equal text."""
    return json.dumps(domain.describe(), sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=256)
def domain_of(text: str) -> Domain:
    return domain_from(json.loads(text))


def _key(domain: Domain, bound: Bound | None) -> bytes:
    return domain.key(bound)


class Deterministic(Coder):
    """What all of these coders share."""

    def is_deterministic(self) -> bool:
        return True


class PlanRequestCoder(Deterministic):
    """`[scope, run_id, engine, observe]`."""

    def encode(self, value: PlanRequest) -> bytes:
        return pack(value.scope, value.run_id, value.engine, value.observe)

    def decode(self, encoded: bytes) -> PlanRequest:
        return PlanRequest(*unpack(encoded, "plan request"))


class ReadTaskCoder(Deterministic):
    """`[scope, domain, chain, partition, fields, fencing_token, lineage, epoch, members, member, run_id]`, and the chain's kind
    where it is not a partition's."""

    def encode(self, value: ReadTask) -> bytes:
        return pack(
            value.scope,
            domain_text(value.domain),
            value.chain,
            value.partition,
            value.fields,
            value.fencing_token,
            value.lineage,
            value.epoch,
            value.members,
            value.member,
            value.run_id,
            *(() if value.kind == PARTITION else (value.kind,)),
        )

    def decode(self, encoded: bytes) -> ReadTask:
        scope, domain, *rest = unpack(encoded, "read task")
        return ReadTask(scope, domain_of(domain), *rest)


class PlannedTasksCoder(Deterministic):
    """The encoded tasks, in order."""

    _task = ReadTaskCoder()

    def encode(self, value: PlannedTasks) -> bytes:
        return pack(*map(self._task.encode, value.tasks))

    def decode(self, encoded: bytes) -> PlannedTasks:
        return PlannedTasks(tuple(map(self._task.decode, unpack(encoded, "list of tasks"))))


class OffsetRangeCoder(Deterministic):
    """`[start, stop]`."""

    def encode(self, value: OffsetRange) -> bytes:
        return pack(value.start, value.stop)

    def decode(self, encoded: bytes) -> OffsetRange:
        return OffsetRange(*unpack(encoded, "range of tasks"))


class PageRestrictionCoder(Deterministic):
    """`[done]`."""

    def encode(self, value: PageRestriction) -> bytes:
        return pack(value.done)

    def decode(self, encoded: bytes) -> PageRestriction:
        return PageRestriction(*unpack(encoded, "page restriction"))


class PartitionProgressCoder(Deterministic):
    """`[scope, domain, chain, partition, lineage, epoch, members, member, state, fencing_token, sequence, events, bound key,
    basis, blocker, hint]`."""

    def encode(self, value: PartitionProgress) -> bytes:
        return pack(
            value.scope,
            domain_text(value.domain),
            value.chain,
            value.partition,
            value.lineage,
            value.epoch,
            value.members,
            value.member,
            value.state.value,
            value.fencing_token,
            value.sequence,
            value.events,
            _key(value.domain, value.bound),
            value.basis,
            value.blocker,
            value.blocker_hint,
        )

    def decode(self, encoded: bytes) -> PartitionProgress:
        values = unpack(encoded, "partition progress")
        domain = domain_of(values[1])
        values[1], values[8], values[12] = domain, ChainState(values[8]), domain.from_key(values[12])
        return PartitionProgress(*values)


class FrontierUpdateCoder(Deterministic):
    """`[scope, domain, lineage, epoch, after key, bound key, basis, withheld, [[partition, code, hint, event, position text,
    since, retry_at]]]`."""

    def encode(self, value: FrontierUpdate) -> bytes:
        return pack(
            value.scope,
            domain_text(value.domain),
            value.lineage,
            value.membership_epoch,
            _key(value.domain, value.after),
            _key(value.domain, value.bound),
            value.basis,
            value.withheld,
            [
                [
                    partition,
                    b.code,
                    b.hint,
                    b.event_id,
                    None if b.position is None else value.domain.text(b.position),
                    b.since,
                    b.retry_at,
                ]
                for partition, b in value.blockers
            ],
        )

    def decode(self, encoded: bytes) -> FrontierUpdate:
        scope, text, lineage, epoch, after, bound, basis, withheld, blockers = unpack(
            encoded, "frontier update"
        )
        domain = domain_of(text)
        return FrontierUpdate(
            scope,
            domain,
            lineage,
            epoch,
            domain.from_key(after),
            domain.from_key(bound),
            basis,
            withheld,
            tuple(
                (
                    partition,
                    Blocker(code, hint, event, None if at is None else domain.from_text(at), since, retry_at),
                )
                for partition, code, hint, event, at, since, retry_at in blockers
            ),
        )


class DeadLetterCoder(Deterministic):
    """`[partition, sequence, event, position, reason, payload, path, operator, recorded_at]`.

    The position comes without its domain: text as it is, an integer as the bytes of its key, a tuple as an array of these."""

    def encode(self, value: DeadLetter) -> bytes:
        return pack(
            value.partition,
            value.sequence,
            value.event_id,
            position_value(value.position),
            value.reason,
            value.payload,
            value.path,
            value.operator,
            value.recorded_at,
        )

    def decode(self, encoded: bytes) -> DeadLetter:
        values = unpack(encoded, "dead letter")
        values[3] = position_from(values[3])
        return DeadLetter(*values)


class MembersSeenCoder(Deterministic):
    """The encoded progress of each chain, by chain number."""

    _progress = PartitionProgressCoder()

    def encode(self, value: MembersSeen) -> bytes:
        return pack(*(self._progress.encode(value.latest[chain]) for chain in sorted(value.latest)))

    def decode(self, encoded: bytes) -> MembersSeen:
        seen = MembersSeen()
        for progress in unpack(encoded, "frontier accumulator"):
            seen.add(self._progress.decode(progress))
        return seen


class FrontierHintCoder(Deterministic):
    """`[scope, domain, epoch, bound key, missing]`."""

    def encode(self, value: FrontierHint) -> bytes:
        return pack(
            value.scope,
            domain_text(value.domain),
            value.epoch,
            _key(value.domain, value.bound),
            value.missing,
        )

    def decode(self, encoded: bytes) -> FrontierHint:
        scope, text, epoch, bound, missing = unpack(encoded, "frontier hint")
        domain = domain_of(text)
        return FrontierHint(scope, domain, epoch, domain.from_key(bound), missing)


def position_value(position: Position) -> object:
    if isinstance(position, tuple):
        return [position_value(item) for item in position]
    return keys.encode_integer(position) if isinstance(position, int) else position


def position_from(value: Any) -> Position:
    if isinstance(value, list):
        return tuple(map(position_from, value))
    if isinstance(value, bytes):
        return keys.decode_integer(value, 0)[0]
    text: str = value
    return text


def register_coders() -> None:
    """Make Beam use these coders. Called when the transforms are imported, in every process that runs them."""
    for kind, coder in (
        (PlanRequest, PlanRequestCoder),
        (ReadTask, ReadTaskCoder),
        (PlannedTasks, PlannedTasksCoder),
        (PartitionProgress, PartitionProgressCoder),
        (FrontierUpdate, FrontierUpdateCoder),
        (FrontierHint, FrontierHintCoder),
        (DeadLetter, DeadLetterCoder),
    ):
        registry.register_coder(kind, coder)


register_coders()
