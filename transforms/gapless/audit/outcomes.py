"""Dead letters and the receipts of open pages: each belongs to a chain that can have it, each skip stands in the journal."""

from collections.abc import Collection, Iterator

from gapless.audit.contradiction import Checked, Contradiction
from gapless.store.evidence import Evidence


def judge_outcomes(
    evidence: Evidence, skips: Collection[tuple[int, str]], checked: Checked
) -> Iterator[Contradiction]:
    """Whatever contradicts. `skips` are the (chain, event id) that the journal says an operator has skipped. The database looks
    for what is wrong, so that nothing is held here however many there are."""
    checked.receipts = evidence.receipts()
    for row in evidence.receipts_astray():
        event = row["event_id"]
        if row["state"] == "ended":
            detail = f"event {event!r} has a receipt of an open page, and the chain has ended"
        elif row["outcome"] not in ("delivered", "dead_lettered"):
            detail = f"event {event!r} has the unknown outcome {row['outcome']!r}"
        else:
            detail = f"event {event!r} counts as a dead letter, and there is none of it"
        yield Contradiction(
            "outcome_missing",
            detail,
            lineage=row["lineage"],
            partition=row["partition"],
            chain=row["chain"],
        )
    for row in evidence.dead_letters_astray():
        yield Contradiction(
            "record_orphaned",
            f"the dead letter of event {row['event_id']!r} belongs to chain {row['chain']}, which is another one's, or nowhere",
            lineage=row["lineage"],
            partition=row["partition"],
            chain=row["chain"],
            sequence=row["sequence"],
        )
    for row in evidence.skipped_letters():
        if (row["chain"], row["event_id"]) not in skips:
            yield Contradiction(
                "operator_unrecorded",
                f"event {row['event_id']!r} was skipped by an operator's word",
                lineage=row["lineage"],
                partition=row["partition"],
                chain=row["chain"],
                sequence=row["sequence"],
            )
    for kind, row in evidence.orphans():
        yield Contradiction(
            "record_orphaned",
            f"{row['records']} {kind} records belong to chain {row['chain']}, which is nowhere",
            chain=row["chain"],
        )
    for row in evidence.listed_twice():
        yield Contradiction(
            "file_listed_twice",
            f"{row['records']} promotions of the data set name it",
            lineage=row["lineage"],
            path=row["path"],
        )
