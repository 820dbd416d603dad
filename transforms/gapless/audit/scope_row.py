"""The scope's own row, and the lineages that rebuilds have begun: what stands now against everything that led to it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gapless.audit.contradiction import Contradiction, is_key, key_of, shown
from gapless.audit.epochs import Epochs
from gapless.errors import PositionError
from gapless.progress import Domain
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Evidence, Record, json_object
from gapless.store.records import ScopeIdentity
from gapless.store.scopes import fingerprint


@dataclass(slots=True)
class Decisions:
    """What the journal holds of operators' words: rebuilds by the lineage they ended, seals and skipped events by chain."""

    rebuilds: dict[int, Record] = field(default_factory=dict)
    seals: set[tuple[int, bytes]] = field(default_factory=set)
    skips: set[tuple[int, str]] = field(default_factory=set)

    def judge(self, evidence: Evidence) -> Iterator[Contradiction]:
        """Take in the journal. It grows with what people decide, and with restarts, of which nothing is kept."""
        for entry in evidence.journal():
            if entry["action"] not in ("rebuild", "seal", "skip"):
                continue
            try:
                detail = json_object(entry["detail"])
                if entry["action"] == "rebuild":
                    self.rebuilds[entry["lineage"]] = {
                        "epoch": int(detail["epoch"]),
                        "frontier": bytes.fromhex(detail["frontier"]),
                        "to_lineage": int(detail["to_lineage"]),
                    }
                elif entry["action"] == "seal":
                    self.seals.add((entry["chain"], key_of(dict(detail), evidence.domain)))
                else:
                    self.skips.add((entry["chain"], detail["event_id"]))
            except (ValueError, KeyError, TypeError, PositionError):
                yield Contradiction(
                    "record_damaged",
                    f"a {entry['action']} in the journal cannot be read",
                    lineage=entry["lineage"],
                    partition=entry["partition"],
                    chain=entry["chain"],
                )


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """The audit of the scope's row. `candidates`: somebody is live who has not entered."""

    scope: Record
    domain: Domain
    epochs: Epochs
    decisions: Decisions
    candidates: bool

    def judge(self) -> Iterator[Contradiction]:
        yield from self._identity()
        yield from self._lineages()
        yield from self._epoch()
        yield from self._frontier()
        yield from self._cap()
        yield from self._listed()

    def _says(
        self, code: str, detail: str, epoch: int | None = None, lineage: int | None = None
    ) -> Contradiction:
        return Contradiction(code, detail, lineage=lineage or self.scope["lineage"], epoch=epoch)

    def _identity(self) -> Iterator[Contradiction]:
        scope = self.scope
        damaged = [
            name for name in ("after", "frontier", "list_bound") if not is_key(scope[name], self.domain)
        ]
        for name in damaged:
            said = f"the scope's {name.replace('_', ' ')} reads {shown(scope[name], self.domain)}"
            yield self._says("record_damaged", said)
        if "after" in damaged:
            return
        after = self.domain.from_key(scope["after"])
        if (
            fingerprint(ScopeIdentity(scope["scope"], self.domain, scope["identity"], after))
            != scope["fingerprint"]
        ):
            yield self._says(
                "identity_edited",
                "what is read, or where the claim starts, is not what the fingerprint was taken of",
            )

    def _lineages(self) -> Iterator[Contradiction]:
        for lineage in range(1, self.scope["lineage"]):
            ended = self.decisions.rebuilds.get(lineage)
            if ended is None or ended["to_lineage"] != lineage + 1:
                said = f"no rebuild in the journal ended lineage {lineage}"
                yield self._says("lineage_unproved", said, lineage=lineage)
                continue
            published = self.epochs.publishes.lineage(lineage).last
            if ended["frontier"] != published:
                yield self._says(
                    "frontier_differs",
                    f"the rebuild ended it at the frontier {shown(ended['frontier'], self.domain)}; published was"
                    f" {shown(published, self.domain)}",
                    lineage=lineage,
                )
            last = max(self.epochs.lineage(lineage), default=0)
            if ended["epoch"] != last:
                said = f"the rebuild ended it in membership epoch {ended['epoch']}; its last one is {last}"
                yield self._says("epoch_missing", said, lineage=lineage)
        later = [one for one in self.epochs.of if one > self.scope["lineage"]]
        for lineage in later:
            yield self._says(
                "lineage_unproved", f"membership epochs of lineage {lineage}, which has not begun"
            )

    def _epoch(self) -> Iterator[Contradiction]:
        scope = self.scope
        mine = self.epochs.lineage(scope["lineage"])
        before = max((number for lineage in self.epochs.of.values() for number in lineage), default=0)
        # A rebuild takes a number, under which the first list then freezes the new lineage's membership.
        begun = scope["lineage"] > 1 and not mine
        expected = before + 1 if begun else before
        if scope["epoch"] != expected:
            said = f"the scope is in membership epoch {scope['epoch']}; the last one opened is {before}"
            yield self._says("epoch_missing", said, scope["epoch"])
        generation = mine[max(mine)].generation if mine else ""
        if scope["generation"] != generation:
            yield self._says(
                "generation_unproved",
                f"the scope is under routing generation {scope['generation']!r}; its membership epoch is of {generation!r}",
                scope["epoch"],
            )

    def _frontier(self) -> Iterator[Contradiction]:
        scope = self.scope
        published = self.epochs.publishes.lineage(scope["lineage"])
        if scope["frontier"] != published.last or scope["published_at"] != published.published_at:
            when = "" if scope["frontier"] != published.last else ", at another time"
            yield self._says(
                "frontier_differs",
                f"the frontier stands {shown(scope['frontier'], self.domain)}; the last one published is"
                f" {shown(published.last, self.domain)}{when}",
            )
        mine = self.epochs.lineage(scope["lineage"])
        last = max(mine, default=0)
        asserted = published.asserted_by(scope["epoch"]) or (last > 0 and mine[last].basis == "asserted")
        if (scope["basis"] == "asserted") != asserted:
            led = "asserted" if asserted else "certified"
            yield self._says(
                "basis_differs", f"the frontier counts as {scope['basis']}; what led to it is {led}"
            )

    def _cap(self) -> Iterator[Contradiction]:
        scope = self.scope
        frontier, cap = scope["frontier"], scope["cap"]
        if frontier > cap:
            said = f"the frontier stands {shown(frontier, self.domain)}, above its cap: {shown(cap, self.domain)}"
            yield self._says("frontier_not_proved", said)
        if not self.epochs.lineage(scope["lineage"]):
            return
        certified = self.epochs.lists.lineage(scope["lineage"]).certified_by(None)
        if scope["list_certified"]:
            if cap > certified:
                said = f"the cap is {shown(cap, self.domain)}; lists were certified {shown(certified, self.domain)}"
                yield self._says("cap_not_proved", said)
        elif cap > frontier and (self.candidates or scope["observed_generation"] != scope["generation"]):
            yield self._says(
                "cap_not_proved",
                f"a newcomer or another routing generation is unproven, and the cap is {shown(cap, self.domain)}",
            )

    def _listed(self) -> Iterator[Contradiction]:
        """Where a lineage's list was certified from the first on, it stays so: every publish lies at or below such a list."""
        for lineage, epochs in self.epochs.of.items():
            numbers = sorted(epochs)
            if not numbers or epochs[numbers[0]].list_bound == NO_BOUND:
                continue
            if lineage == self.scope["lineage"] and not self.scope["list_certified"]:
                yield self._says(
                    "cap_not_proved", "the list was certified from the first on, and counts as frozen"
                )
            for number, following in zip(numbers, [*numbers[1:], None], strict=True):
                seen = epochs[following].observation if following is not None else None
                certified = self.epochs.lists.lineage(lineage).certified_by(seen)
                published = self.epochs.publishes.lineage(lineage).by(number)
                if published > certified:
                    yield self._says(
                        "frontier_not_proved",
                        f"published was {shown(published, self.domain)}; the list of partitions was certified"
                        f" {shown(certified, self.domain)}",
                        number,
                        lineage,
                    )
