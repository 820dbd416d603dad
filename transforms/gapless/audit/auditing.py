"""The audit of one scope: what the store claims, derived anew from its own evidence in one snapshot, and every file read.

Law: whatever is derived here uses the rules by which rows are written, and none of the rows' own sums. Bounds are compared as
they stand now: since they never go back, whoever is below a frontier today was below it when it was published.

Not derived, since no record repeats it: what lists say of a partition besides (`fields`, `parents`; the successors of a chain
that has not left), and the names in a list that other lists have followed.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from gapless.audit.chains import ChainAudit
from gapless.audit.contradiction import Checked, Contradiction, is_key
from gapless.audit.epochs import Epochs
from gapless.audit.files import Looking, judge_dead_letter_files, judge_files, look_at
from gapless.audit.lists import Lists
from gapless.audit.members import Members
from gapless.audit.named import Named
from gapless.audit.outcomes import judge_outcomes
from gapless.audit.publishes import Publishes
from gapless.audit.routing import Routing
from gapless.audit.scope_row import Decisions, ScopeRow
from gapless.progress import Bound, Domain
from gapless.store.evidence import Evidence, Record
from gapless.store.records import PARTITION
from gapless.store.store import Store


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit came to. `frontier` is as it is published, proved or not (None: there is none, or it reads as none)."""

    scope: str
    domain: Domain
    lineage: int
    epoch: int
    frontier: Bound | None
    as_of: datetime
    contradictions: Sequence[Contradiction]
    checked: Checked

    @property
    def clean(self) -> bool:
        """Everything that is claimed follows from its evidence, and every file is what was promoted."""
        return not self.contradictions


def audit(
    store: Store,
    scope: str,
    *,
    look: Looking = look_at,
    found: Callable[[Contradiction], None] | None = None,
) -> AuditReport:
    """Derive everything the scope claims, and compare. `found` is called with each contradiction when it is met.

    Writes nothing. Memory grows with chains and changes of membership, not with promotions, publishes or receipts. Raises
    UnknownScope, and StoreError where a row cannot even be read."""
    checked = Checked()
    contradictions: list[Contradiction] = []

    def note(each: Iterator[Contradiction]) -> None:
        for contradiction in each:
            contradictions.append(contradiction)
            if found is not None:
                found(contradiction)

    with store.evidence(scope) as evidence:
        row, domain = evidence.scope, evidence.domain
        as_of = evidence.as_of
        note(_judge_claims(evidence, checked))
    note(judge_files(store, scope, look, checked))
    with store.evidence(scope) as evidence:
        note(judge_dead_letter_files(evidence, look, checked))
    return AuditReport(
        scope=scope,
        domain=domain,
        lineage=row["lineage"],
        epoch=row["epoch"],
        frontier=_published(row["frontier"], domain),
        as_of=as_of,
        contradictions=contradictions,
        checked=checked,
    )


def _published(key: bytes, domain: Domain) -> Bound | None:
    return domain.from_key(key) if is_key(key, domain) else None


def _judge_claims(evidence: Evidence, checked: Checked) -> Iterator[Contradiction]:
    domain, scope = evidence.domain, evidence.scope
    lists, publishes, decisions = Lists(domain), Publishes(domain), Decisions()
    epochs = Epochs(domain, lists, publishes)
    yield from lists.judge(evidence.observations(), scope)
    yield from publishes.judge(evidence.frontier_moves())
    yield from epochs.judge(evidence.epochs())
    yield from decisions.judge(evidence)
    checked.lists = sum(len(one.numbers) for one in lists.of.values())
    checked.publishes = publishes.count
    checked.epochs = sum(len(one) for one in epochs.of.values())
    rebuilt = {lineage: entry["epoch"] + 1 for lineage, entry in decisions.rebuilds.items()}
    members = Members(domain, epochs, scope, rebuilt, decisions.seals)
    further = Further(Routing(epochs, {chain for chain, _ in decisions.seals}), Named(epochs, rebuilt))
    candidates = yield from _judge_chains(evidence, members, further, lists, checked)
    yield from members.remaining()
    yield from further.named.remaining()
    yield from ScopeRow(scope, domain, epochs, decisions, candidates).judge()
    yield from judge_outcomes(evidence, decisions.skips, checked)


@dataclass(frozen=True, slots=True)
class Further:
    """What is judged of a chain beside its membership."""

    routing: Routing
    named: Named

    def judge(self, row: Record, audited: ChainAudit) -> Iterator[Contradiction]:
        found = (*self.routing.judge(row, audited.derived), *self.named.judge(row))
        for code, detail, epoch in found:
            yield replace(audited.at(code, detail), epoch=epoch)


def _judge_chains(
    evidence: Evidence, members: Members, further: Further, lists: Lists, checked: Checked
) -> Generator[Contradiction, None, bool]:
    """Every chain of every lineage, one after the other. Returns whether there is a live one that has not entered."""
    promotions = _ByChain(evidence.promotions())
    restarts = _ByChain(evidence.restarts())
    letters = _ByChain(evidence.dead_letter_counts())
    asked = members.asked()
    candidates = False
    for row in evidence.chains():
        chain = row["chain"]
        counted = sum(one["letters"] for one in letters.of(chain))
        audited = ChainAudit(
            row,
            evidence.domain,
            list(restarts.of(chain)),
            counted,
            lists.lineage(row["lineage"]).order,
            asked.get(chain, ()),
        )
        yield from audited.judge(promotions.of(chain))
        yield from members.judge(row, audited.derived)
        yield from further.judge(row, audited)
        checked.chains += 1
        checked.promotions += audited.derived.records
        checked.dead_letters += counted
        candidates = candidates or _is_candidate(row, evidence.scope)
    return candidates


def _is_candidate(row: Record, scope: Record) -> bool:
    live = row["lineage"] == scope["lineage"] and row["epoch_out"] is None
    return live and row["epoch_in"] is None and row["kind"] == PARTITION


class _ByChain:
    """Rows that come by chain, given out chain by chain to whoever goes through the chains in the same order."""

    def __init__(self, rows: Iterable[Record]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def of(self, chain: int) -> Iterator[Record]:
        """Those of this chain. Rows of chains before it, which nobody asked for, are passed over."""
        while self._next is not None and self._next["chain"] < chain:
            self._next = next(self._rows, None)
        while self._next is not None and self._next["chain"] == chain:
            row = self._next
            self._next = next(self._rows, None)
            yield row
