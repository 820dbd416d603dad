"""The frontier as it was published, publish by publish: by lineage and membership epoch, what was claimed last."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from gapless.audit.contradiction import Contradiction, is_key, shown
from gapless.progress import Domain
from gapless.progress.keys import NO_BOUND
from gapless.store.evidence import Record


@dataclass(slots=True)
class LineagePublishes:
    """What was published in one lineage: `epochs` in which the frontier moved, with the last `frontiers` and `bases` there, and
    when it first and last did."""

    epochs: list[int] = field(default_factory=list)
    frontiers: list[bytes] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)
    first: list[datetime] = field(default_factory=list)
    last_at: list[datetime] = field(default_factory=list)
    published_at: object = None

    def by(self, epoch: int) -> bytes:
        """The frontier as it stood at the end of that epoch; b"" where nothing had been published."""
        at = bisect_right(self.epochs, epoch)
        return self.frontiers[at - 1] if at else NO_BOUND

    def asserted_by(self, epoch: int) -> bool:
        """Whether it rested on an operator's word at the end of that epoch."""
        at = bisect_right(self.epochs, epoch)
        return at > 0 and self.bases[at - 1] == "asserted"

    def moments(self, epoch: int) -> tuple[datetime | None, datetime | None]:
        """When it first and last moved in that epoch; None where it did not."""
        at = bisect_right(self.epochs, epoch) - 1
        if at < 0 or self.epochs[at] != epoch:
            return None, None
        return self.first[at], self.last_at[at]

    @property
    def last(self) -> bytes:
        return self.frontiers[-1] if self.frontiers else NO_BOUND


@dataclass(slots=True)
class Publishes:
    """Law: within a lineage the frontier only rises, epochs do not go back, and what is asserted stays so."""

    domain: Domain
    of: dict[int, LineagePublishes] = field(default_factory=dict)
    count: int = 0
    last_lineage: int = 0

    def lineage(self, lineage: int) -> LineagePublishes:
        return self.of.setdefault(lineage, LineagePublishes())

    def judge(self, rows: Iterable[Record]) -> Iterator[Contradiction]:
        """Take in every publish, in order."""
        for row in rows:
            self.count += 1
            yield from self._take(row)

    def _take(self, row: Record) -> Iterator[Contradiction]:
        lineage, epoch, frontier = row["lineage"], row["epoch"], row["frontier"]
        known = self.lineage(lineage)

        def broken(detail: str) -> Contradiction:
            return Contradiction("history_broken", detail, lineage=lineage, epoch=epoch)

        if lineage < self.last_lineage:
            yield broken(f"a publish of lineage {lineage} after one of lineage {self.last_lineage}")
        self.last_lineage = max(lineage, self.last_lineage)
        if frontier <= known.last or not is_key(frontier, self.domain):
            before = shown(known.last, self.domain)
            yield broken(f"published {shown(frontier, self.domain)} after {before}")
        if known.epochs and epoch < known.epochs[-1]:
            yield broken(f"published in membership epoch {epoch} after {known.epochs[-1]}")
        if known.bases and known.bases[-1] == "asserted" and row["basis"] != "asserted":
            yield Contradiction(
                "basis_differs",
                f"published as {row['basis']} after an operator's word was part of it",
                lineage=lineage,
                epoch=epoch,
            )
        if known.epochs and epoch <= known.epochs[-1]:
            known.frontiers[-1] = max(frontier, known.frontiers[-1])
            known.bases[-1] = row["basis"]
            known.last_at[-1] = row["published_at"]
        else:
            known.epochs.append(epoch)
            known.frontiers.append(max(frontier, known.last))
            known.bases.append(row["basis"])
            known.first.append(row["published_at"])
            known.last_at.append(row["published_at"])
        known.published_at = row["published_at"]
