"""Runs the steps of a conformance case against the real classes. It translates, and holds no rule of its own.

Promotions are decided by the ledger and made durable in a store on a fresh database, which has to agree; what `state`
answers is read back from there.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from adapter_delivery import DeliveryLog
from adapter_reader import read_script
from adapter_store import StoreMirror

from gapless.errors import NotComparable
from gapless.progress import (
    Assertion,
    Bound,
    Certificate,
    ChainState,
    Checkpoint,
    Estimate,
    KeyRange,
    Ledger,
    Membership,
    MembershipCode,
    PageAttempt,
    Recent,
    Scalar,
    Seal,
    Terminal,
    Vector,
    coarsen,
    cutover,
    frontier_of,
    highest,
    infer_domain,
    judge_join,
    judge_seal,
    parse_decimal_units,
)

Step = Mapping[str, Any]
OUTCOMES = {
    "ok": Terminal.DELIVERED,
    "delivered": Terminal.DELIVERED,
    "failed": Terminal.DEAD_LETTERED,
    "dead": Terminal.DEAD_LETTERED,
    "dead_lettered": Terminal.DEAD_LETTERED,
}

STATES = {None: "open", "active": "open", "live": "open"}


class Scenario:
    """One case's world. `run` returns what the step came to, in the words of the cases."""

    def __init__(self, store_url: str) -> None:
        self._store = StoreMirror(store_url)
        self._store_url = store_url
        self._ledgers: dict[str, Ledger] = {}
        self._seen: Recent[tuple[str, Any]] = Recent(10_000)
        # A page is called by a label; another fetch may go by the same one, and is an attempt of its own.
        self._attempts: dict[tuple[str, str], PageAttempt] = {}
        self._outcomes: dict[str, Terminal] = {}
        self._late: dict[str, list[str]] = {}
        self._axes: dict[str, str] = {}
        self._ranges: dict[str, KeyRange] = {}
        self._seals: dict[str, Seal] = {}
        self._candidates: set[str] = set()
        self._departed: set[str] = set()
        self._membership: Membership | None = None
        self._cap: Bound | None = None
        self._published: Bound | None = None

    def run(self, step: Step) -> Any:
        return OPERATIONS[step["op"]](self, step)

    def close(self) -> None:
        self._store.close()
        if "_delivery" in self.__dict__:
            self._delivery.close()

    # partitions

    def epoch(self, step: Step) -> str:
        members, starts = frozenset(step["members"]), step.get("init") or {}
        cap = bound(step.get("mcert"))
        if self._membership is None:
            self._membership, self._cap = Membership(1, "", members), cap
            self._store.freeze(sorted(members), cap)
            for name in sorted(members | starts.keys()):
                self._start(name, starts.get(name) or {})
            return MembershipCode.OK.value
        decided = cutover(
            self._membership,
            members,
            bounds={
                name: self._checkpoint(name).bound for name in self._membership.members | self._candidates
            },
            seals=self._seals,
            departed=self._departed,
            published=self._published,
        )
        read = self._membership.members | self._candidates
        self._store.cut_over(sorted(members), read, cap, self._published, decided.code)
        if decided.membership is not None:
            self._departed |= self._membership.members - members
            self._candidates -= members
            self._membership, self._cap = decided.membership, cap
            for name in sorted(starts.keys() - self._ledgers.keys()):
                self._start(name, starts[name])
        return decided.code.value

    def init(self, step: Step) -> str:
        ledger = self._ledgers.get(step["p"])
        if ledger is not None and ledger.checkpoint.started:
            self._store.refuses_first_write(step["p"], step.get("token"))
            return "EXISTS"
        self._start(step["p"], step)
        return "OK"

    def page(self, step: Step) -> None:
        certified, assumed, guessed = (bound(step.get(key)) for key in ("cert", "assumed", "estimate"))
        page = PageAttempt(
            "",
            step.get("tin"),
            step.get("tout"),
            tuple((event, position) for event, position in step.get("ev") or ()),
            None if certified is None else Certificate(certified, "page"),
            bool(step.get("prov")),
            assertion=None if assumed is None else Assertion(assumed, "assumed in the case"),
            estimate=None if guessed is None else Estimate(guessed),
        )
        ledger = self._ledger(step["p"])
        self._attempts[step["p"], step["pg"]] = replace(page, name=f"{step['pg']} {page!r}")
        ledger.offer(self._attempts[step["p"], step["pg"]])
        for event, _ in page.events:
            if event in self._outcomes:
                self._settle(step["p"], event)

    def outcome(self, step: Step) -> None:
        events = step["ev"] if isinstance(step["ev"], list) else [step["ev"]]
        for event in events:
            self._outcomes.setdefault(event, OUTCOMES[step["as"]])
            for name, ledger in self._ledgers.items():
                if ledger.holds(event):
                    self._settle(name, event)

    def promote(self, step: Step) -> str:
        return self._promote(step, [step["pg"]])

    def promote_group(self, step: Step) -> str:
        return self._promote(step, step["pgs"])

    def state(self, step: Step) -> dict[str, Any]:
        name = step["p"]
        checkpoint = self._checkpoint(name)
        found = {
            "token": checkpoint.page_token,
            "bound": spell(checkpoint.bound),
            "gen": checkpoint.fencing_token,
            "state": checkpoint.state.value,
            "late": self._late.get(name, []),
        }
        self._store.agrees(name, checkpoint, found["late"])
        return {field: found[field] for field in step["expect"]}

    def takeover(self, step: Step) -> str:
        ledger = self._ledger(step["p"])
        taken = ledger.checkpoint.taken_by(step["gen"])
        self._store.take(step["p"], step["gen"], taken)
        if taken is None:
            return "GENERATION_REUSED"
        ledger.adopt(taken)
        return "OK"

    def delete_state(self, step: Step) -> str:
        self._ledgers[step["p"]] = self._new_ledger(self._checkpoint(step["p"]).forgotten())
        self._store.forget(step["p"])
        return "TOMBSTONED"

    def gap(self, step: Step) -> str:
        self._ledger(step["p"]).adopt(replace(self._checkpoint(step["p"]), state=ChainState.GAP))
        self._store.hold(step["p"], ChainState.GAP)
        return "OK"

    def ack_allowed(self, step: Step) -> bool:
        return self._ledger(step["p"]).acknowledgeable(step["token"])

    # membership

    def seal(self, step: Step) -> str:
        name, successors = step["p"], step.get("succ")
        ledger = self._ledger(name)
        seal = Seal(
            required_bound(step["at"]),
            None if successors is None else tuple(successors),
            bool(step.get("decommission")),
        )
        code = judge_seal(ledger.checkpoint.bound, seal)
        if code is MembershipCode.OK:
            self._seals[name] = seal
            ledger.adopt(replace(ledger.checkpoint, state=ChainState.SEALED))
            self._store.seal(name, seal)
        return code.value

    def join(self, step: Step) -> str:
        name, floor, key_range = step["p"], bound(step.get("floor")), range_of(step.get("range"))
        unsealed = (
            self._candidates | (self._membership.members if self._membership else set())
        ) - self._seals.keys()
        code = judge_join(
            floor,
            step.get("token"),
            published=self._published,
            parents=step.get("parents") or (),
            sealed=self._seals.keys(),
            key_range=key_range,
            unsealed_ranges=[self._ranges[other] for other in unsealed - {name} if other in self._ranges],
        )
        if code is MembershipCode.OK:
            self._candidates.add(name)
            self._departed.discard(name)
            self._seals.pop(name, None)
            self._store.join(name, step.get("parents") or ())
            self._start(
                name, {"token": step["token"], "bound": step.get("floor"), "range": step.get("range")}
            )
        return code.value

    def frontier(self, step: Step) -> Any:
        if self._membership is None:
            return None
        bounds = {name: self._checkpoint(name).bound for name in self._membership.members}
        value = frontier_of(self._membership, bounds, self._axes, self._cap)
        if isinstance(value, Vector):
            return {"vector": {name: spell(own) for name, own in value.bounds.items()}}
        claim = value.bound if isinstance(value, Scalar) else None
        self._store.supports(claim, self._cap)
        return spell(claim)

    def publish(self, step: Step) -> str:
        candidate = bound(step["value"])
        moved = highest(self._published, candidate) != self._published
        self._published = highest(self._published, candidate)
        self._store.publish(candidate, moved)
        return "OK" if moved else "NOT_MONOTONIC"

    # positions and the page loop

    def canon(self, step: Step) -> str | None:
        return spell(coarsen(Bound(int(step["value"]), step["end"] == "<="), step["grain"]))

    def micros(self, step: Step) -> int:
        return parse_decimal_units(step["seconds"], 6)

    def typed_less(self, step: Step) -> bool | str:
        try:
            first = infer_domain(step["a"], step.get("collation"))
            second = infer_domain(step["b"], step.get("collation"))
            return Bound.before(first.parse(step["a"])) < Bound.before(second.parse(step["b"]))
        except NotComparable:
            return "TYPE_MISMATCH"

    def script(self, step: Step) -> dict[str, Any]:
        return read_script(step["start"], step["pages"], live=bool(step.get("live")))

    # message logs

    def table(self, step: Step) -> dict[str, Any]:
        return self._delivery.table(step)

    def table2(self, step: Step) -> dict[str, Any]:
        return self._delivery.table2(step)

    def cover(self, step: Step) -> str:
        return self._delivery.cover(step)

    @cached_property
    def _delivery(self) -> DeliveryLog:
        return DeliveryLog(f"{self._store_url}.log")

    # what several operations need

    def _start(self, name: str, start: Step) -> None:
        known = self._ledgers.get(name)
        generation = start.get("gen", known.checkpoint.fencing_token if known is not None else 0)
        state = ChainState(STATES.get(start.get("state"), start.get("state")))
        checkpoint = Checkpoint(generation, 0, start.get("token"), bound(start.get("bound")), state)
        self._ledgers[name] = self._new_ledger(checkpoint)
        self._store.start(name, checkpoint)
        if start.get("axis") is not None:
            self._axes[name] = start["axis"]
        served = range_of(start.get("range"))
        if served is not None:
            self._ranges[name] = served

    def _new_ledger(self, checkpoint: Checkpoint) -> Ledger:
        return Ledger(checkpoint, limit=1000, seen=self._seen)

    def _ledger(self, name: str) -> Ledger:
        if name not in self._ledgers:
            self._start(name, {})
        return self._ledgers[name]

    def _checkpoint(self, name: str) -> Checkpoint:
        return self._ledger(name).checkpoint

    def _settle(self, name: str, event: str) -> None:
        outcome = self._outcomes[event]
        self._ledger(name).settle([event], outcome)
        self._store.record_receipt(name, event, outcome)

    def _promote(self, step: Step, labels: list[str]) -> str:
        name = step["p"]
        attempts = [self._attempts.get((name, label)) for label in labels]
        names = [
            label if attempt is None else attempt.name
            for label, attempt in zip(labels, attempts, strict=True)
        ]
        ledger = self._ledger(name)
        if "gen" in step and ledger.checkpoint.fencing_token == 0:
            self.takeover(step)  # nobody has taken the partition: its reader takes it before it reads
        outcomes = ledger.receipts()
        before = ledger.checkpoint
        expected = replace(
            before, fencing_token=step.get("gen", before.fencing_token), page_token=step["from"]
        )
        result = ledger.promote(names, token=expected.page_token, fencing_token=expected.fencing_token)
        if result.run is None:
            self._store.refuses(name, expected)
            return result.code.value
        self._late.setdefault(name, []).extend(event for event, _ in result.run.late)
        self._store.promote(name, result.run, outcomes)
        return result.code.value


def bound(text: str | None) -> Bound | None:
    """`<=7` and `<7`; None is no claim."""
    return None if text is None else required_bound(text)


def required_bound(text: str) -> Bound:
    inclusive = text.startswith("<=")
    return Bound(int(text.removeprefix("<=" if inclusive else "<")), inclusive)


def spell(value: Bound | None) -> str | None:
    return None if value is None else f"{'<=' if value.inclusive else '<'}{value.position}"


def range_of(ends: list[Any] | None) -> KeyRange | None:
    return None if ends is None else KeyRange(*ends)


OPERATIONS: Mapping[str, Callable[[Scenario, Step], Any]] = {
    operation.__name__: operation
    for operation in (
        *(Scenario.epoch, Scenario.init, Scenario.page, Scenario.outcome, Scenario.promote),
        *(Scenario.promote_group, Scenario.state, Scenario.takeover, Scenario.delete_state, Scenario.gap),
        *(Scenario.ack_allowed, Scenario.seal, Scenario.join, Scenario.frontier, Scenario.publish),
        *(Scenario.table, Scenario.table2, Scenario.cover),
        *(Scenario.canon, Scenario.micros, Scenario.typed_less, Scenario.script),
    )
}
