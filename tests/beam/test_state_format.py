"""Every byte format: pinned, exact both ways, equal for equal values, and refused where another version wrote it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import pytest
from apache_beam.coders.coders import Coder
from apache_beam.coders.typecoders import registry
from apache_beam.io.restriction_trackers import OffsetRange
from hypothesis import given
from hypothesis import strategies as st

from gapless import state_format
from gapless.errors import StoreNewer
from gapless.page_restriction import PageRestriction
from gapless.progress import Bound, ChainState, Domain, IntegerDomain, ListDomain, TextDomain, TimestampDomain
from gapless.progress_merge import FrontierHint, MembersSeen
from gapless.store.records import Blocker, DeadLetter
from gapless.updates import FrontierUpdate, PartitionProgress, PlannedTasks, PlanRequest, ReadTask

INTEGER = IntegerDomain()
NOON = datetime(2024, 5, 17, 12, 0, 0, 250, tzinfo=timezone.utc)
PROGRESS = PartitionProgress(
    scope="orders",
    domain=INTEGER,
    chain=7,
    partition="p1",
    lineage=1,
    epoch=2,
    members=8,
    member=True,
    state=ChainState.HELD,
    fencing_token=3,
    sequence=50,
    events=50000,
    bound=Bound.through(100),
    basis="certified",
    blocker="unsettled_event",
    blocker_hint="ValueError: é",
)


@dataclass(frozen=True)
class Format:
    coder: Coder
    value: Any
    pinned: str


FORMATS = {
    "plan request": Format(
        state_format.PlanRequestCoder(),
        PlanRequest("orders", "r-1", "local", observe=False),
        "0194a66f7264657273a3722d31a56c6f63616cc2",
    ),
    "read task": Format(
        state_format.ReadTaskCoder(),
        ReadTask("orders", INTEGER, 7, "p1", '{"region":1}', 3, 1, 2, 8, True, "r-1"),
        (
            "019ba66f7264657273b27b2274797065223a22696e7465676572227d07a27031ac7b22726567696f6e223a317d030102"
            "08c3a3722d31"
        ),
    ),
    "list of tasks": Format(
        state_format.PlannedTasksCoder(),
        PlannedTasks((ReadTask("orders", INTEGER, 7, "p1", "{}", 3, 1, 2, 8, True, "r-1"),)),
        "0191c42c019ba66f7264657273b27b2274797065223a22696e7465676572227d07a27031a27b7d03010208c3a3722d31",
    ),
    "range of tasks": Format(state_format.OffsetRangeCoder(), OffsetRange(3, 64), "01920340"),
    "page restriction": Format(state_format.PageRestrictionCoder(), PageRestriction(done=True), "0191c3"),
    "partition progress": Format(
        state_format.PartitionProgressCoder(),
        PROGRESS,
        (
            "01dc0010a66f7264657273b27b2274797065223a22696e7465676572227d07a27031010208c3a468656c640332cdc350"
            "c403816402a9636572746966696564af756e736574746c65645f6576656e74ae56616c75654572726f723a20c3a9"
        ),
    ),
    "partition progress without a bound": Format(
        state_format.PartitionProgressCoder(),
        replace(PROGRESS, bound=None, blocker=None, blocker_hint=None, state=ChainState.OPEN),
        (
            "01dc0010a66f7264657273b27b2274797065223a22696e7465676572227d07a27031010208c3a46f70656e0332cdc350"
            "c400a9636572746966696564c0c0"
        ),
    ),
    "frontier update": Format(
        state_format.FrontierUpdateCoder(),
        FrontierUpdate(
            "orders",
            INTEGER,
            1,
            2,
            Bound.before(0),
            Bound.through(2**70),
            "asserted",
            "unsettled_event",
            (
                ("p1", Blocker("unsettled_event", "no", "e1", 110, NOON, None)),
                ("p2", Blocker("no_bound", "none yet")),
            ),
        ),
        (
            "0199a66f7264657273b27b2274797065223a22696e7465676572227d0102c4028001c40b8940000000000000000002a8"
            "6173736572746564af756e736574746c65645f6576656e749297a27031af756e736574746c65645f6576656e74a26e6f"
            "a26531a3313130d7ff000f4240664746c0c097a27032a86e6f5f626f756e64a86e6f6e6520796574c0c0c0c0"
        ),
    ),
    "dead letter": Format(
        state_format.DeadLetterCoder(),
        DeadLetter("p1", 4, "e1", (2**70, "b"), "ValueError: no", '{"id":1}', "/dead/1.parquet", "ops", NOON),
        (
            "0199a2703104a2653192c40a89400000000000000000a162ae56616c75654572726f723a206e6fa87b226964223a317d"
            "af2f646561642f312e70617271756574a36f7073d7ff000f4240664746c0"
        ),
    ),
    "frontier hint": Format(
        state_format.FrontierHintCoder(),
        FrontierHint("orders", INTEGER, 2, Bound.before(90), 1),
        "0195a66f7264657273b27b2274797065223a22696e7465676572227d02c403815a0101",
    ),
    "text with half a surrogate pair": Format(
        state_format.PlanRequestCoder(),
        PlanRequest("orders", "r\udcff", "local"),
        "0194a66f7264657273d60172edb3bfa56c6f63616cc3",
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_bytes_are_those_of_version_1(name: str) -> None:
    one = FORMATS[name]
    assert one.coder.encode(one.value).hex() == one.pinned
    assert one.coder.decode(bytes.fromhex(one.pinned)) == one.value


def test_the_bytes_of_an_accumulator_are_those_of_version_1() -> None:
    coder = state_format.MembersSeenCoder()
    seen = MembersSeen()
    for chain in (9, 7):
        seen.add(replace(PROGRESS, chain=chain))
    inner = state_format.PartitionProgressCoder()
    first, second = (inner.encode(replace(PROGRESS, chain=chain)) for chain in (7, 9))
    size = len(first)
    assert size < 256
    assert coder.encode(seen) == b"\x01\x92" + b"".join(
        b"\xc4" + bytes((size,)) + one for one in (first, second)
    )
    assert coder.decode(coder.encode(seen)) == seen


@pytest.mark.parametrize("name", FORMATS)
def test_another_version_is_refused_and_named(name: str) -> None:
    one = FORMATS[name]
    encoded = one.coder.encode(one.value)
    for other in (b"\x02" + encoded[1:], b"\x00" + encoded[1:], b""):
        with pytest.raises(StoreNewer, match="state format"):
            one.coder.decode(other)


@pytest.mark.parametrize("name", FORMATS)
def test_every_coder_is_deterministic_and_travels_as_itself(name: str) -> None:
    coder = FORMATS[name].coder
    assert coder.is_deterministic()
    again = Coder.from_runner_api(coder.to_runner_api(_NoContext()), _NoContext())
    assert again.encode(FORMATS[name].value) == coder.encode(FORMATS[name].value)


class _NoContext:
    """Coders of one component ask nothing of it."""


@pytest.mark.parametrize(
    "kind",
    [PlanRequest, ReadTask, PlannedTasks, PartitionProgress, FrontierUpdate, FrontierHint, DeadLetter],
    ids=lambda k: k.__name__,
)
def test_beam_uses_these_coders_for_the_elements(kind: type) -> None:
    assert type(registry.get_coder(kind)).__module__ == "gapless.state_format"


# --- any values at all ---

texts = st.text() | st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE000), min_size=1)
integers = st.integers() | st.integers(-(2**90), 2**90)
clean = st.text(st.characters(exclude_categories=["Cs"]))
_POSITIONS: dict[Domain, st.SearchStrategy[Any]] = {
    INTEGER: integers,
    TextDomain(): clean,
    TimestampDomain("us"): st.integers(-(10**15), 10**15),
    ListDomain((INTEGER, TextDomain())): st.tuples(integers, clean),
}
domains = st.sampled_from(list(_POSITIONS))
numbers = st.integers(0, 2**62)
moments = st.datetimes(timezones=st.just(timezone.utc))


@st.composite
def domains_with(draw: st.DrawFn, make: Callable[..., Any]) -> Any:
    """`make(draw, domain, bounds)`: a value whose bounds are of its domain."""
    domain = draw(domains)
    bounds = st.none() | st.builds(Bound, _POSITIONS[domain], st.booleans())
    return make(draw, domain, bounds)


def _progress(draw: st.DrawFn, domain: Domain, bounds: Any) -> PartitionProgress:
    return PartitionProgress(
        draw(texts),
        domain,
        draw(numbers),
        draw(texts),
        *(draw(numbers) for _ in range(3)),
        draw(st.booleans()),
        draw(st.sampled_from(ChainState)),
        *(draw(numbers) for _ in range(3)),
        draw(bounds),
        draw(st.sampled_from(["certified", "asserted"])),
        draw(st.none() | texts),
        draw(st.none() | texts),
    )


def _update(draw: st.DrawFn, domain: Domain, bounds: Any) -> FrontierUpdate:
    position = st.none() | _POSITIONS[domain]
    blockers = st.builds(
        Blocker, texts, texts, st.none() | texts, position, st.none() | moments, st.none() | moments
    )
    return FrontierUpdate(
        draw(texts),
        domain,
        draw(numbers),
        draw(numbers),
        draw(bounds),
        draw(bounds),
        draw(texts),
        draw(st.none() | texts),
        tuple(draw(st.lists(st.tuples(texts, blockers), max_size=3))),
    )


def _hint(draw: st.DrawFn, domain: Domain, bounds: Any) -> FrontierHint:
    return FrontierHint(draw(texts), domain, draw(numbers), draw(bounds), draw(numbers))


def _task(draw: st.DrawFn, domain: Domain, bounds: Any) -> ReadTask:
    n = [draw(numbers) for _ in range(5)]
    return ReadTask(
        draw(texts), domain, n[0], draw(texts), draw(texts), *n[1:], draw(st.booleans()), draw(texts)
    )


huge = st.integers(0, 9).map(lambda n: 10**5000 + n)
positions = st.deferred(
    lambda: integers | huge | texts | st.lists(positions, min_size=1, max_size=3).map(tuple)
)
letters = st.builds(
    DeadLetter,
    texts,
    numbers,
    texts,
    positions,
    texts,
    texts,
    st.none() | texts,
    st.none() | texts,
    st.none() | moments,
)


def exact(coder: Coder, value: Any) -> None:
    encoded = coder.encode(value)
    decoded = coder.decode(encoded)
    assert decoded == value
    assert type(decoded) is type(value)
    assert coder.encode(decoded) == encoded


@given(domains_with(_progress))
def test_any_progress_is_exact_both_ways(value: PartitionProgress) -> None:
    exact(state_format.PartitionProgressCoder(), value)


@given(domains_with(_update))
def test_any_frontier_update_is_exact_both_ways(value: FrontierUpdate) -> None:
    exact(state_format.FrontierUpdateCoder(), value)


@given(domains_with(_hint))
def test_any_hint_is_exact_both_ways(value: FrontierHint) -> None:
    exact(state_format.FrontierHintCoder(), value)


@given(domains_with(_task))
def test_any_task_is_exact_both_ways(value: ReadTask) -> None:
    exact(state_format.ReadTaskCoder(), value)


@given(letters)
def test_any_dead_letter_is_exact_both_ways(value: DeadLetter) -> None:
    exact(state_format.DeadLetterCoder(), value)


@given(st.builds(PlanRequest, texts, texts, texts, st.booleans()))
def test_any_plan_request_is_exact_both_ways(value: PlanRequest) -> None:
    exact(state_format.PlanRequestCoder(), value)


@given(st.lists(domains_with(_progress), max_size=4))
def test_any_accumulator_is_exact_both_ways_whatever_the_order(values: list[PartitionProgress]) -> None:
    seen, backwards = MembersSeen(), MembersSeen()
    by_chain = {value.chain: value for value in values}
    for value in by_chain.values():
        seen.add(value)
    for value in reversed(by_chain.values()):
        backwards.add(value)
    exact(state_format.MembersSeenCoder(), seen)
    assert state_format.MembersSeenCoder().encode(seen) == state_format.MembersSeenCoder().encode(backwards)
