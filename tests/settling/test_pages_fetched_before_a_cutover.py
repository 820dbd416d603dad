"""A page that was fetched ahead under one routing generation is none of the next one's, though its token is the same.

Where it names no generation, only the list read after it does, and after a cutover that names the new one."""

import time

from emission import EmittingRun, promote
from streamed_script import growing, idle

from gapless.paging.page import Partition
from gapless.paging.source import Assignment, ListedPartition
from gapless.settling.worker import Slice
from gapless.store import Store
from gapless.store.records import MembershipPolicy
from gapless.testing import ScriptedSource

POLICY = MembershipPolicy(moves="never behind what is certified")
ONE_PAGE = Slice(pages=1, goes_on=True)


def changing() -> ScriptedSource:
    listed = [ListedPartition(Partition("a", {}))]
    return ScriptedSource(
        {"a": {**growing(3), "t3": idle("t3")}},
        # Planned, and proved for the first page; then changed for good.
        assignments=[Assignment(listed, "g1"), Assignment(listed, "g1"), Assignment(listed, "g2")],
    )


def fetched_ahead(source: ScriptedSource) -> None:
    deadline = time.monotonic() + 10
    while ("a", "t1") not in source.fetches:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def cut_over(store: Store, source: ScriptedSource) -> None:
    store.observe("scripted", source.next_assignment(), policy=POLICY)
    assert store.cutover("scripted").accepted


def test_it_is_not_settled_in_place(bench):
    source = changing()
    run = bench.run(source, policy=POLICY, local=True)
    run.settle("a", ONE_PAGE)
    assert bench.chain("a").sequence == 1
    fetched_ahead(source)
    cut_over(run.store, source)
    assert bench.chain("a").generation == "g2"
    run.settle("a", ONE_PAGE)
    assert bench.chain("a").sequence == 2
    assert source.fetches.count(("a", "t1")) == 2, "asked for again under the new generation"


def test_it_is_not_emitted(bench):
    source = changing()
    run = EmittingRun(bench, source)
    stream = run.stream("a", max_open_pages=1)
    stream.poll()
    promote(run.store, stream.out)
    fetched_ahead(source)
    cut_over(run.store, source)
    (page,) = stream.wait().poll()
    assert (page.start_token, page.generation) == ("t1", "g2")
    assert source.fetches.count(("a", "t1")) == 2, "asked for again under the new generation"
