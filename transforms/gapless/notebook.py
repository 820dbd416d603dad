"""What a notebook shows of results: HTML that is self-contained, runs nothing, and escapes every name. Pure functions of the
documents that `gapless status --json` and its like print."""

from collections.abc import Mapping, Sequence
from typing import Any

from gapless.progress.shown_html import fragment, line, table

SHOWN = 20
"""How many rows a table has; how many more there are is said below it."""

Document = Mapping[str, Any]


def status_html(document: Document) -> str:
    """A status document: the frontier or why there is none, who holds, and the partitions, the lowest bound first."""
    return fragment(*_status(document))


def backfill_html(document: Document, verdict: str, *, pages: int, events: int, seconds: float) -> str:
    """How a backfill ended, and the status document as of then."""
    done = f"{events:,} events in {pages:,} pages promoted in {seconds:.1f} s"
    return fragment(line(verdict, strong="backfill"), line(done, muted=True), *_status(document))


def frontier_html(document: Document) -> str:
    """The part of a status document that is about the frontier, with its blockers."""
    return fragment(*_claim(document), *_blockers(document["blockers"]))


def claim_text(frontier: Document | None, withheld: Document | None) -> str:
    """A frontier in words.

    >>> claim_text({"position": "400", "inclusive": False, "basis": "certified"}, None)
    'complete before 400 (certified)'
    >>> claim_text(None, {"code": "no_bound", "detail": "p1 has no bound"})
    'withheld: no_bound, p1 has no bound'
    """
    held = None if withheld is None else ", ".join(filter(None, (withheld["code"], withheld["detail"])))
    if frontier is None:
        return f"withheld: {held or 'nothing is published yet'}"
    basis = frontier["basis"] + (", violated" if frontier.get("violated") else "")
    text = f"complete {bound_text(frontier)} ({basis})"
    return text if held is None else f"{text}; no further: {held}"


def bound_text(bound: Document | None) -> str | None:
    """A bound in words; None for none.

    >>> bound_text({"position": "7", "inclusive": True})
    'through 7'
    """
    return None if bound is None else f"{'through' if bound['inclusive'] else 'before'} {bound['position']}"


def _status(document: Document) -> list[str]:
    counts, run = document["counts"], document["run"]
    numbers = ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in counts.items() if value)
    parts = [*_claim(document), line(numbers or "nothing read yet", muted=True)]
    if run is not None:
        parts.append(line(f"run {run['number']} on {run['engine']}: {run['state']}", muted=True))
    partitions = document["partitions"]
    rows = [
        (one["partition"], one["state"], bound_text(one["bound"]), one["sequence"], one["events"])
        for one in partitions[:SHOWN]
    ]
    return [
        *parts,
        *_blockers(document["blockers"]),
        table(["partition", "state", "complete", "pages", "events"], rows),
        *_more(counts["members"] - len(rows), "partitions"),
    ]


def _claim(document: Document) -> list[str]:
    after = document["frontier"] and document["frontier"].get("after")
    where = f"lineage {document['lineage']}, membership epoch {document['membership_epoch']}"
    if after is not None:
        # The claim begins where its start ends: what lies before it, or through it, is not part of it.
        where = f"{where}, {'after' if document['frontier']['after_inclusive'] else 'from'} {after}"
    if document.get("list") is not None:
        where = f"{where}, list {document['list']}"
    return [
        line(claim_text(document["frontier"], document["withheld"]), strong=document["scope"]),
        line(where, muted=True),
    ]


def _blockers(blockers: Sequence[Document]) -> list[str]:
    if not blockers:
        return []
    rows = [
        (
            one["partition"],
            one["code"],
            one["event_id"],
            one["position"],
            one["since"],
            one["hint"],
            (one.get("release") or {}).get("command"),
        )
        for one in blockers[:SHOWN]
    ]
    heads = ["held by", "code", "event", "position", "since", "why", "released by"]
    return [table(heads, rows), *_more(len(blockers) - len(rows), "blockers")]


def _more(count: int, of_what: str) -> list[str]:
    return [line(f"and {count:,} more {of_what}", muted=True)] if count > 0 else []
