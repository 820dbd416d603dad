"""Any history of a source that moves its partitions about, and of runs, publishers and cutovers, one by one and at once.

On the real databases: what is published is held against what the source knows to be true, and in the end the frontier arrives."""

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from moving_partitions import KEYS, Answer, MovingPartitions

from gapless.errors import InvalidPage
from gapless.progress import Bound, ChainState, IntegerDomain
from gapless.store.records import ChainRow, MembershipPolicy, Promotion, ScopeIdentity

ACTORS = 3
POLICIES = {
    "moves": MembershipPolicy(moves="never behind a certificate"),
    "handoff": MembershipPolicy(handoff=True),
    "again": MembershipPolicy(),
    "none": MembershipPolicy(reading_again=False),
}
_scopes = itertools.count(1)
small = st.integers(0, 7)


@dataclass
class Actor:
    """A run, publisher and planner with a store of its own, and what it has in hand meanwhile: maybe stale."""

    store: object
    run: int = 0
    page: tuple[ChainRow, Answer] | None = None
    listing: object = None
    epoch: int = 0
    promoted: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)


class MembershipMachine(RuleBasedStateMachine):
    """`stores` are ACTORS stores and a reader's, on one database; every history is a scope of its own."""

    def __init__(self, stores, kit, counts):
        super().__init__()
        self.kit = kit
        self.counts = counts
        self.scope = f"history {next(_scopes)}"
        self.reader = stores[-1]
        self.actors = [Actor(store) for store in stores[:ACTORS]]
        self.reader.register_scope(ScopeIdentity(self.scope, IntegerDomain(), {"path": "/"}))
        self.pages = {}
        self.last = None
        self.numbers = itertools.count()

    @initialize(policy=st.sampled_from(sorted(POLICIES)), certified=st.booleans())
    def begin(self, policy, certified):
        self.policy = policy
        self.source = MovingPartitions(policy != "moves", certified)
        for number, actor in enumerate(self.actors):
            self.new_run(actor, number)
        for key in range(KEYS):
            self.source.append(key)
        self.source.settle()
        self.observe(self.actors[0], 0)
        self.read_everything(self.actors[0], KEYS)
        self.publish_now(self.actors[0], 0)

    # the source

    @rule(keys=st.lists(st.integers(0, KEYS - 1), min_size=1, max_size=4), settle=st.booleans())
    def events_happen(self, keys, settle):
        for key in keys:
            self.source.append(key)
        if settle:
            self.source.settle()

    @rule(which=small, merge=st.booleans(), vanish=st.sampled_from([False, False, False, True]))
    def a_partition_ends(self, which, merge, vanish):
        # A source that assigns anew and forgets whom it had could be read again by nobody, and of one who was never seen nobody
        # can say where it ended.
        vanish = vanish and self.policy in ("moves", "handoff")
        if vanish:
            self.observe(self.actors[0], 0)
        self.source.split(which, merge_into_open=merge, vanish=vanish)

    @rule(key=st.integers(0, KEYS - 1), which=small, new=st.booleans())
    def the_routing_changes(self, key, which, new):
        self.source.reroute(key, which, new=new)

    # the actors, one by one and at once

    @rule(actor=st.integers(0, ACTORS - 1), n=small)
    def reads_and_promotes(self, actor, n):
        self.fetch(self.actors[actor], n)
        self.promote(self.actors[actor], n)

    @rule(actor=st.integers(0, ACTORS - 1), n=small)
    def observes_and_reads_everything(self, actor, n):
        self.observe(self.actors[actor], n)
        self.read_everything(self.actors[actor], 4)

    @rule(actor=st.integers(0, ACTORS - 1), n=small, looks=st.booleans())
    def cuts_over_and_publishes(self, actor, n, looks):
        if looks:
            self.observe(self.actors[actor], n)
        self.cut_over(self.actors[actor], n)
        self.publish_now(self.actors[actor], n)

    @rule(actor=st.integers(0, ACTORS - 1), what=st.integers(0, 10), n=small)
    def does(self, actor, what, n):
        self.act(self.actors[actor], what, n)

    @rule(whats=st.lists(st.integers(0, 10), min_size=ACTORS, max_size=ACTORS), n=small)
    def do_at_once(self, whats, n):
        work = [
            lambda actor=actor, what=what: self.act(actor, what, n)
            for actor, what in zip(self.actors, whats, strict=True)
        ]
        self.kit.at_once(work)

    @rule(n=st.integers(0, 9))
    def an_operator_starts_over(self, n):
        # Of a successor that vanished in an earlier lineage nothing will ever be seen in this one.
        if n == 0 and all(served.listed for served in self.source.partitions.values()):
            self.actors[0].store.rebuild(self.scope, "as the history says")
            self.observe(self.actors[0], n)

    def act(self, actor, what, n):
        (
            *(self.fetch, self.promote, self.promote, self.observe, self.take_list, self.observe_list),
            *(self.note_epoch, self.publish, self.publish_now, self.cut_over, self.new_run),
        )[what](actor, n)

    def new_run(self, actor, n):
        """What the last one had in hand is lost with it."""
        actor.run = actor.store.begin_run(self.scope, f"{self.scope}, run {next(self.numbers)}", "test")
        actor.page = None

    def observe(self, actor, n):
        actor.store.observe(self.scope, self.source.listing(), policy=POLICIES[self.policy])

    def take_list(self, actor, n):
        actor.listing = self.source.listing()

    def observe_list(self, actor, n):
        """The list may be an old one by now: the source has gone on, and others have told."""
        if actor.listing is None:
            return
        try:
            actor.store.observe(self.scope, actor.listing, policy=POLICIES[self.policy])
        except InvalidPage as error:
            if "comes back after" not in str(error):
                raise

    def fetch(self, actor, n):
        readable = self.readable(actor.store)
        if readable:
            self.fetch_of(actor, readable[n % len(readable)], 1 + n)

    def readable(self, store):
        """Chains of the routing generation by which the source answers now."""
        chains = store.snapshot(self.scope).chains
        return [
            row for row in chains if row.generation == self.source.generation and row.state is ChainState.OPEN
        ]

    def fetch_of(self, actor, row, most):
        row = actor.store.take(row.chain, actor.run)
        actor.page = None
        if row is None:
            return
        if row.kind == "transit":
            answer = self.source.handoff(str(row.fields["from"]))
        else:
            answer = self.source.page(row.partition, int(row.page_token or -1), most)
        if answer.generation == row.generation:
            actor.page = (row, answer)

    def promote(self, actor, n):
        if actor.page is None:
            return
        (row, answer), actor.page = actor.page, None
        path = f"/{next(self.numbers)}"
        self.pages[path] = answer.events
        through = Bound.through(answer.through)
        end = answer.end and row.kind == "transit"
        count = len(answer.events)
        actor.store.promote(
            Promotion(
                *(row, 1, row.page_token, str(answer.through), through, "certified", through, end, count),
                *(path, "digest", count, 1),
            )
        )

    def read_everything(self, actor, most):
        for row in self.readable(actor.store):
            self.fetch_of(actor, row, most)
            self.promote(actor, 0)

    def note_epoch(self, actor, n):
        actor.epoch = actor.store.scope(self.scope).epoch

    def publish(self, actor, n):
        """By the epoch in hand, which may be past."""
        actor.store.publish(self.scope, actor.epoch)

    def publish_now(self, actor, n):
        self.note_epoch(actor, n)
        self.publish(actor, n)

    def cut_over(self, actor, n):
        self.counts["cutovers"] += actor.store.cutover(self.scope).accepted

    # what must hold

    @invariant()
    def the_published_frontier_is_true(self):
        if not hasattr(self, "source"):
            return
        seen = self.reader.snapshot(self.scope)
        scope = seen.scope
        if self.last is not None and self.last.lineage == scope.lineage:
            assert scope.epoch >= self.last.epoch
            assert self.last.frontier is None or scope.frontier >= self.last.frontier, "it went back"
        if self.last is not None and scope.epoch != self.last.epoch:
            self.counts["epochs"] += 1
        if scope.frontier is not None:
            for row in seen.chains:
                if row.is_member:
                    assert row.bound is not None
                    assert row.bound >= scope.frontier, f"above member {row.partition}"
            assert not scope.capped or scope.cap >= scope.frontier
            if self.last is None or self.claim(scope) != self.claim(self.last):
                self.the_claim_holds(scope, seen.chains)
        self.last = scope

    @staticmethod
    def claim(scope):
        return (scope.lineage, scope.epoch, scope.frontier, scope.list_certified)

    def the_claim_holds(self, scope, chains):
        """Every event it speaks of is in the data set as it is listed now."""
        self.counts["claims"] += 1
        assert scope.frontier.position <= self.source.settled
        listed = {event for row in self.reader.promotions(self.scope) for event in self.pages[row.path]}
        members = None
        if not scope.list_certified:
            members = {row.partition for row in chains if row.is_member} | self.departed()
        claimed = set(self.source.claimed(scope.frontier.position, scope.generation, members))
        assert claimed <= listed, f"claimed and not there: {sorted(claimed - listed)}"

    def departed(self):
        query = (
            "SELECT c.partition FROM gapless_chain c JOIN gapless_scope s ON c.scope = s.scope AND c.lineage = s.lineage"
            f" WHERE s.scope = '{self.scope}' AND c.state = 'sealed'"
        )
        return set(
            self.reader._database.read(lambda connection: connection.exec_driver_sql(query).scalars().all())
        )

    def teardown(self):
        """Whatever has happened: when the source stands still and everybody who vanished is sealed, the frontier arrives."""
        if not hasattr(self, "source"):
            return
        actor = self.actors[0]
        self.source.append(0)
        self.source.settle()
        self.new_run(actor, 0)
        for _ in range(30):
            self.observe(actor, 0)
            self.seal_whoever_vanished(actor)
            self.read_everything(actor, 10**6)
            self.cut_over(actor, 0)
            self.publish_now(actor, 0)
            self.the_published_frontier_is_true()
            scope = self.reader.scope(self.scope)
            if scope.frontier == Bound.through(self.source.settled) and not scope.changing:
                break
        else:
            assert self.policy == "none", self.reader.cutover(self.scope, dry_run=True)
            assert scope.generation != self.source.generation
        self.counts["arrived"] += scope.frontier == Bound.through(self.source.settled)

    def seal_whoever_vanished(self, actor):
        for row in self.reader.snapshot(self.scope).chains:
            served = self.source.partitions.get(row.partition)
            if served is not None and not served.listed and row.seal is None:
                actor.store.seal(self.scope, row.partition, Bound.through(served.seal), "it is gone")


@pytest.mark.parametrize(
    ("histories", "steps"),
    [(20, 30), pytest.param(40, 40, marks=pytest.mark.soak)],
)
def test_no_history_leads_to_a_false_frontier_and_each_to_its_end(scene, kit, histories, steps):
    stores = [scene.another() for _ in range(ACTORS + 1)]
    counts = dict.fromkeys(("cutovers", "epochs", "claims", "arrived"), 0)
    run_state_machine_as_test(
        lambda: MembershipMachine(stores, kit, counts),
        settings=settings(
            max_examples=histories,
            stateful_step_count=steps,
            # What went on at once cannot be repeated, so that there is nothing to shrink.
            phases=[Phase.generate],
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert all(counts.values()), counts
