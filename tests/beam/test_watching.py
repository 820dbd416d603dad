"""A planner that goes on: each chain is handed out once, newcomers included, until a newer run has taken over."""

from contextlib import closing

import pytest
from streamed_script import growing, idle

from gapless.errors import SourceUnavailable
from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.plan import plan_run
from gapless.store import open_store
from gapless.store.records import MembershipPolicy
from gapless.testing import ManualClock, ScriptedSource
from gapless.updates import PlanRequest
from gapless.watching import Watch, WatchState


def listing(*names: str, generation: str = "") -> Assignment:
    return Assignment([ListedPartition(Partition(name, {})) for name in names], generation)


class Planner:
    """Looks at the lists of a script, one after the other."""

    def __init__(
        self, url: str, *lists: Assignment | SourceUnavailable, run_id: str = "one", **policy
    ) -> None:
        names = {
            entry.partition.id for one in lists if isinstance(one, Assignment) for entry in one.partitions
        }
        script = {**growing(1), "t1": idle("t1")}
        self.source = ScriptedSource(dict.fromkeys(sorted(names), script), assignments=lists)
        self.store = open_store(url, create=True)
        self.state = WatchState()
        self._watch = Watch(
            self.source,
            self.store,
            PlanRequest("scripted", run_id, "test"),
            MembershipPolicy(**policy) if policy else None,
            ManualClock(),
        )

    def look(self) -> list[str]:
        """The partitions handed out."""
        self.looked = self._watch.look(self.state)
        self.state = self.looked.state
        return sorted(task.partition for task in self.looked.tasks)


@pytest.fixture
def planner(sqlite_url):
    with closing(open_store(sqlite_url, create=True)):
        opened = []

        def make(*lists, **options):
            opened.append(Planner(sqlite_url, *lists, **options))
            return opened[-1]

        yield make
        for one in opened:
            one._watch.close()
            one.store.close()


def test_every_chain_is_handed_out_once_however_often_the_list_is_looked_at(planner):
    watching = planner(listing("a", "b"))
    assert watching.look() == ["a", "b"]
    assert [one.partition for one in watching.looked.progress] == ["a", "b"]
    for _ in range(3):
        assert watching.look() == []
        assert watching.looked.progress == []


def test_a_newcomer_is_handed_out_when_it_is_seen(planner):
    watching = planner(listing("a"), listing("a"), listing("a", "b"), listing("a", "b", "c"))
    assert [watching.look() for _ in range(5)] == [["a"], [], ["b"], ["c"], []]
    assert {task.fencing_token for task in watching.looked.tasks} <= {1}


def test_a_planner_that_lost_its_state_hands_out_everything_again(planner):
    watching = planner(listing("a", "b"))
    watching.look()
    watching.state = WatchState()
    assert watching.look() == ["a", "b"]
    assert watching.state.number == 1, "the same run"


def test_it_ends_when_a_newer_run_has_taken_a_chain(planner):
    watching, other = planner(listing("a", "b")), planner(listing("a", "b"), run_id="two")
    watching.look()
    plan = plan_run(other.source, other.store, PlanRequest("scripted", "two", "test"))
    assert watching.look() == []
    assert not watching.state.done, "nothing is taken yet"
    other.store.take(plan.tasks[0].chain, plan.number)
    assert watching.look() == []
    assert watching.state.done


def test_a_list_that_cannot_be_read_leaves_what_is_known_and_is_looked_at_again(planner, caplog):
    watching = planner(listing("a"), SourceUnavailable("HTTP 503"), listing("a", "b"))
    assert watching.look() == ["a"]
    assert watching.look() == []
    assert "HTTP 503" in caplog.text
    assert watching.look() == ["b"]


def test_a_first_list_that_cannot_be_read_begins_no_run(planner):
    watching = planner(SourceUnavailable("HTTP 503"), listing("a"))
    with pytest.raises(SourceUnavailable):
        watching.look()
    assert watching.store.scopes() == []


def test_another_generations_chains_are_handed_out_when_they_are_to_be_read(planner):
    """Under the source's promise tokens and bounds go on: the chains keep their numbers, and their readers."""
    watching = planner(
        listing("a", generation="g1"),
        listing("a", generation="g1"),
        listing("a", "b", generation="g2"),
        moves="never behind",
    )
    assert watching.look() == ["a"]
    assert watching.look() == []
    assert watching.look() == ["b"]
    assert watching.look() == []


def test_a_generation_without_a_proof_is_not_read(planner):
    watching = planner(listing("a", generation="g1"), listing("a", generation="g2"), reading_again=False)
    assert watching.look() == ["a"]
    assert watching.look() == []
    assert watching.store.scope("scripted").generation == "g1"


def test_a_chain_that_may_not_be_read_yet_is_handed_out_when_it_may(planner):
    lists = (listing("a", generation="g1"), listing("a", "b", generation="g2"))
    before = planner(*lists, moves="never behind", on_change="hold")
    assert before.look() == ["a"]
    assert before.look() == ["b"], "which waits as a candidate"
    watching = planner(lists[1], run_id="two", moves="never behind", on_change="hold")
    assert watching.look() == ["b"]
    assert len(watching.state.waiting) == 1
    assert watching.store.cutover("scripted").accepted
    assert watching.look() == ["a"]
    assert watching.state.waiting == ()


def test_what_is_published_comes_with_each_look(planner):
    watching = planner(listing("a"))
    watching.look()
    assert watching.looked.frontier is None
