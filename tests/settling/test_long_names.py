"""Ids, names and bounds up to what every store's indexes hold are kept; what is longer is the fault of its partition alone."""

import random
import string

import pytest

from gapless.errors import InvalidPage
from gapless.paging.limits import LONGEST_BOUND, LONGEST_EVENT_ID, LONGEST_GENERATION, LONGEST_PARTITION_ID
from gapless.progress import Bound, ChainState, TextDomain
from gapless.settling.retrying import RetryPolicy
from gapless.testing import ScriptedPage, ScriptedSource

QUOTES = 2
NEVER_AGAIN = RetryPolicy(attempts=1)


def noise(length: int) -> str:
    """A text that no database can make shorter."""
    return "".join(random.Random(length).choices(string.ascii_letters + string.digits, k=length))


def test_the_longest_ids_are_kept_wherever_an_event_may_end(each_bench):
    event, partition = noise(LONGEST_EVENT_ID - QUOTES), noise(LONGEST_PARTITION_ID - QUOTES)
    generation = noise(LONGEST_GENERATION - QUOTES)
    source = ScriptedSource(
        {partition: {None: ScriptedPage([(event, 1), ("e2", 2)], None, Bound.through(2))}},
        generation=generation,
    )
    each_bench.effect.failing[event] = None
    each_bench.run(source, retry=NEVER_AGAIN).settle_all()
    assert each_bench.chain(partition).state is ChainState.HELD
    each_bench.store.skip("scripted", partition, event, "known", "op")
    each_bench.run(source, retry=NEVER_AGAIN).settle_all()
    assert each_bench.chain(partition).state is ChainState.ENDED
    assert each_bench.dead() == [event]


@pytest.mark.parametrize(
    "event", [noise(LONGEST_EVENT_ID), "é" * 1500, "\x00" * 900], ids=["plain", "accents", "nulls"]
)
def test_a_longer_event_id_holds_its_partition_and_only_that_one(each_bench, event):
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("x" * 2000, 1), (event, 1)], None, Bound.through(1))},
            "b": {None: ScriptedPage([("b1", 1)], None, Bound.through(1))},
        }
    )
    each_bench.run(source, dead_letters=each_bench.letters).settle_all()
    row = each_bench.chain("a")
    assert row.state is ChainState.HELD
    assert row.blocker is not None
    assert row.blocker.hint.startswith(f"an event's id of {len(event):,} characters, more than 2,400 bytes")
    assert each_bench.chain("b").state is ChainState.ENDED


def test_a_longer_certificate_holds_its_partition_and_only_that_one(each_bench):
    source = ScriptedSource(
        {
            "a": {None: ScriptedPage([("a1", "k")], None, Bound.through(noise(LONGEST_BOUND)))},
            "b": {None: ScriptedPage([("b1", "k")], None, Bound.through("k"))},
        },
        domain=TextDomain(),
    )
    each_bench.run(source).settle_all()
    row = each_bench.chain("a")
    assert row.state is ChainState.HELD
    assert row.blocker is not None
    assert "at most 2,400 can be kept" in row.blocker.hint
    assert each_bench.chain("b").state is ChainState.ENDED


@pytest.mark.parametrize(
    ("partition", "generation", "said"),
    [
        (noise(LONGEST_PARTITION_ID), "g", "a partition's id of 1,600 characters"),
        ("a", noise(LONGEST_GENERATION), "a routing generation of 600 characters"),
    ],
    ids=["partition", "generation"],
)
def test_a_list_with_a_longer_name_is_refused_before_anything_is_written(
    each_bench, partition, generation, said
):
    source = ScriptedSource({partition: {None: ScriptedPage([], None)}}, generation=generation)
    with pytest.raises(InvalidPage, match=said):
        each_bench.run(source)
    assert list(each_bench.store.scopes()) == []
