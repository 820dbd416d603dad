"""One chain derived anew from its promotion records, and held against its row.

Law: records are linked by sequence and by page token, from the chain's start; its bound is the highest of theirs, each that of
the certificate kept with it. A page token is compared, and never shown.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gapless.audit.contradiction import Contradiction, is_key, key_of, shown
from gapless.audit.files import other_folder
from gapless.errors import PositionError
from gapless.progress import ChainState, Domain
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Record, json_object
from gapless.store.records import PARTITION

_CLOSED = (ChainState.SEALED.value, ChainState.REPLACED.value, ChainState.SUPERSEDED.value)
_STATES = frozenset(state.value for state in ChainState)

_Restarts = dict[int, list[tuple[str | None, str | None]]]
"""By sequence: which page tokens were put in place of which, in order, by a restart or where a chain was opened again."""


@dataclass(slots=True)
class Under:
    """What was promoted under one routing generation: how far it was proved and read after the last page of it, as keys, and when
    the first and the last of them were promoted."""

    bound: bytes
    read: bytes
    first: datetime
    last: datetime


@dataclass(slots=True)
class Derived:
    """What the promotions of one chain prove, as keys; `certified` is what of the bound rests on certificates alone.

    `complete`: no record is missing between the first and the last one. `stood_at`: those of the bounds asked for that it ever
    had. `under`: by routing generation, in the order in which they came."""

    sequence: int = 0
    token: str | None = None
    bound: bytes = NO_BOUND
    certified: bytes = NO_BOUND
    read_to: bytes = NO_BOUND
    basis: str = "certified"
    events: int = 0
    drift: int = 0
    fencing_token: int = 0
    rank: int = 0
    records: int = 0
    complete: bool = True
    without_outcome: int = 0
    stood_at: set[bytes] = field(default_factory=lambda: {NO_BOUND})
    under: dict[str, Under] = field(default_factory=dict)


@dataclass(slots=True)
class ChainAudit:
    """The audit of one chain. `restarts` and `letters` are the journal's and the dead letters of it, `order` numbers the routing
    generations of its lineage as they were first seen, `asked` are bounds it is said to have had."""

    row: Record
    domain: Domain
    restarts: Iterable[Record] = ()
    letters: int = 0
    order: Mapping[str, int] = field(default_factory=dict)
    asked: Collection[bytes] = ()
    derived: Derived = field(default_factory=Derived)
    _misplaced: bool = False

    def judge(self, promotions: Iterable[Record]) -> Iterator[Contradiction]:
        """Derive the chain from its records, oldest first, and compare its row."""
        restarts = yield from self._read_restarts()
        for record in promotions:
            yield from self._link(record, restarts)
            yield from self._weigh(record)
            yield from self._place(record)
            self._add(record)
        yield from self._compare_checkpoint(restarts)
        yield from self._compare_claims()

    def at(self, code: str, detail: str, sequence: int | None = None) -> Contradiction:
        row = self.row
        return Contradiction(
            code,
            detail,
            lineage=row["lineage"],
            partition=row["partition"],
            chain=row["chain"],
            sequence=sequence,
        )

    def _shown(self, key: bytes) -> str:
        return shown(key, self.domain)

    def _read_restarts(self) -> Generator[Contradiction, None, _Restarts]:
        found: _Restarts = {}
        for entry in self.restarts:
            try:
                detail = json_object(entry["detail"])
                found.setdefault(int(detail["sequence"]), []).append((detail["from"], detail["to"]))
            except (ValueError, KeyError, TypeError):
                yield self.at("record_damaged", "a restart in the journal cannot be read")
        return found

    def _token_after_restarts(self, restarts: _Restarts) -> tuple[str | None, bool]:
        """The page token to go on with, and whether the restarts on the way there are linked."""
        token, linked = self.derived.token, True
        for before, after in restarts.get(self.derived.sequence, ()):
            linked = linked and before == token
            token = after
        return token, linked

    def _link(self, record: Record, restarts: _Restarts) -> Iterator[Contradiction]:
        derived, sequence = self.derived, record["sequence"]
        if sequence > derived.sequence:
            yield self._records_missing(sequence)
        elif sequence < derived.sequence:
            yield self.at(
                "record_damaged",
                f"its pages were promoted before, up to page {derived.sequence - 1}",
                sequence,
            )
        else:
            token, linked = self._token_after_restarts(restarts)
            if record["token_in"] != token or not linked:
                unlinked = "it starts at another page token than the pages before it led to"
                yield self.at("tokens_unlinked", unlinked, sequence)
        if record["fencing_token"] < derived.fencing_token:
            yield self.at(
                "fence_went_back",
                f"promoted by run {record['fencing_token']} after run {derived.fencing_token}",
                sequence,
            )
        rank = self.order.get(record["generation"])
        if rank is None or rank < derived.rank:
            yield self.at(
                "generation_unproved",
                f"promoted under routing generation {record['generation']!r}, which "
                + ("no list ever had" if rank is None else "others had followed already"),
                sequence,
            )
        derived.rank = max(derived.rank, rank or 0)

    def _records_missing(self, following: int) -> Contradiction:
        first, last = self.derived.sequence, following - 1
        self.derived.complete = False
        pages = f"page {first}" if first == last else f"pages {first} to {last}"
        return self.at("record_missing", f"no record promotes {pages}", first)

    def _weigh(self, record: Record) -> Iterator[Contradiction]:
        """A record by itself: its bound is its certificate's, and nothing in it is impossible."""
        sequence, bound = record["sequence"], record["bound"]
        if record["pages"] < 1 or min(record["events"], record["rows"], record["size"], record["drift"]) < 0:
            yield self.at("record_damaged", "it counts fewer than nothing", sequence)
        if (record["path"] is None) != (record["digest"] is None):
            yield self.at(
                "record_damaged", "it has a file without a digest, or a digest without a file", sequence
            )
        if not is_key(record["read_to"], self.domain):
            yield self.at("record_damaged", f"it was read up to {self._shown(record['read_to'])}", sequence)
        try:
            evidence = json_object(record["evidence"])
            certified = key_of(evidence if "position" in evidence else None, self.domain)
        except (ValueError, PositionError):
            yield self.at("certificate_differs", "the certificate kept with it cannot be read", sequence)
            return
        if certified != bound:
            kept = f"the certificate kept with it says {self._shown(certified)}"
            kept = "no certificate is kept with it" if certified == NO_BOUND else kept
            yield self.at(
                "certificate_differs", f"it counts as proved {self._shown(bound)}; {kept}", sequence
            )
        elif bound != NO_BOUND:
            stood = evidence.get("sequence", sequence)
            if not isinstance(stood, int) or not sequence <= stood < sequence + record["pages"]:
                yield self.at("certificate_differs", f"its certificate came with page {stood}", sequence)
            if record["basis"] == "certified" and "reason" in evidence:
                yield self.at("basis_differs", "what an operator asserted counts as certified", sequence)

    def _place(self, record: Record) -> Iterator[Contradiction]:
        """Said once: whoever bears another name does so with every page."""
        if self._misplaced or record["path"] is None:
            return
        folder = other_folder(record["path"], self.row["scope"], self.row["partition"])
        if folder is not None:
            self._misplaced = True
            said = f"it is partition {self.row['partition']!r}"
            yield self.at(
                "checkpoint_differs",
                f"{said}; its pages were promoted into the folder {folder!r}",
                record["sequence"],
            )

    def _add(self, record: Record) -> None:
        """The rule by which a promotion moves a chain."""
        derived, bound = self.derived, record["bound"]
        if bound > derived.bound:
            derived.bound = bound
            if record["basis"] == "asserted":
                derived.basis = "asserted"
        if record["basis"] == "certified":
            derived.certified = max(derived.certified, bound)
        derived.read_to = max(derived.read_to, record["read_to"])
        derived.sequence = record["sequence"] + max(1, record["pages"])
        derived.token = record["token_out"]
        derived.events += record["events"]
        derived.drift += record["drift"]
        derived.fencing_token = max(derived.fencing_token, record["fencing_token"])
        derived.records += 1
        if record["path"] is not None:
            derived.without_outcome += record["events"] - record["rows"]
        if derived.bound in self.asked:
            derived.stood_at.add(derived.bound)
        self._add_under(record)

    def _add_under(self, record: Record) -> None:
        derived, moment = self.derived, record["promoted_at"]
        read = max(derived.bound, derived.read_to)
        known = derived.under.get(record["generation"])
        if known is None:
            derived.under[record["generation"]] = Under(derived.bound, read, moment, moment)
        else:
            known.bound, known.read = derived.bound, read
            known.first, known.last = min(known.first, moment), max(known.last, moment)

    def _compare_checkpoint(self, restarts: _Restarts) -> Iterator[Contradiction]:
        row, derived = self.row, self.derived
        token, linked = self._token_after_restarts(restarts)
        if row["sequence"] > derived.sequence:
            yield self._records_missing(row["sequence"])
        elif row["sequence"] < derived.sequence:
            yield self.at(
                "checkpoint_differs",
                f"its next page is {row['sequence']}; pages up to {derived.sequence - 1} were promoted",
            )
        elif row["page_token"] != token or not linked:
            yield self.at("checkpoint_differs", "its page token is not the one that its promotions led to")
        elif row["state"] not in _CLOSED and (row["state"] == ChainState.ENDED.value) != self._has_ended(
            token
        ):
            ended = "its last page ended it" if self._has_ended(token) else "no page ended it"
            yield self.at("checkpoint_differs", f"it is {row['state']}; {ended}")
        if row["state"] not in _STATES:
            yield self.at("record_damaged", f"its state reads {row['state']!r}")
        if row["fencing_token"] < derived.fencing_token:
            yield self.at(
                "fence_went_back",
                f"run {row['fencing_token']} has it; run {derived.fencing_token} had promoted before",
            )
        if row["kind"] == PARTITION and self.order.get(row["generation"], -1) < derived.rank:
            yield self.at(
                "generation_unproved",
                f"it is of routing generation {row['generation']!r}, which no list had, or others had followed",
            )

    def _has_ended(self, token: str | None) -> bool:
        """An end leads to no token; a chain that was opened again has one."""
        return self.derived.sequence > 0 and token is None

    def _compare_claims(self) -> Iterator[Contradiction]:
        row, derived = self.row, self.derived
        if row["bound"] != derived.bound:
            yield self.at(
                "bound_not_proved",
                f"its bound is {self._shown(row['bound'])}; its promotions prove {self._shown(derived.bound)}",
            )
        elif row["basis"] != derived.basis:
            yield self.at("basis_differs", f"its bound counts as {row['basis']}; it is {derived.basis}")
        if row["read_to"] != derived.read_to:
            yield self.at(
                "checkpoint_differs",
                f"it was read up to {self._shown(row['read_to'])}; its promotions say {self._shown(derived.read_to)}",
            )
        if derived.complete:
            for name, found in (("events", derived.events), ("drift", derived.drift)):
                if row[name] != found:
                    yield self.at("counts_differ", f"{name}: {row[name]}; its promotions sum up to {found}")
        if row["dead_letters"] != self.letters:
            yield self.at(
                "counts_differ", f"dead letters: {row['dead_letters']}; {self.letters} are recorded"
            )
        if derived.without_outcome > 0 and not self.letters:
            yield self.at(
                "outcome_missing",
                f"{derived.without_outcome} events of promoted pages are in no file, and there is no dead letter",
            )
