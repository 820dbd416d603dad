"""What `gapless epoch` says to a reader, from its JSON documents."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gapless_pipelines.cli.printing import number, plural, printable
from gapless_pipelines.cli.status_command import frontier_line, superseded_text
from gapless_pipelines.cli.wording import bound_words, state_words

SHOWN = 20
_PROOFS = {
    "moves": "the source's promise that nothing moves behind a certificate",
    "handoff": "the source's handoff certificate",
    "reading_again": "reading everything again",
    None: "none is declared: `membership.moves` or `membership.handoff` in the job file",
}


def show_lines(document: Mapping[str, Any], *, all_of_them: bool = False) -> Iterator[str]:
    """Epoch, members and candidates, and what a cutover lacks."""
    yield (
        f"{printable(document['scope'])}: membership epoch {document['membership_epoch']}, lineage {document['lineage']},"
        f" list {document['list']}{_routing(document['routing_generation'])}"
    )
    yield frontier_line(document)
    for kind in ("member", "candidate"):
        chains = document[f"{kind}s"]
        shown = chains if all_of_them else chains[:SHOWN]
        yield f"  {plural(len(chains), kind)}"
        yield from (f"    {_chain_text(row)}" for row in shown)
        if len(chains) > len(shown):
            yield f"    and {number(len(chains) - len(shown))} more: --all shows them"
    yield from _change_lines(document)


def _change_lines(document: Mapping[str, Any]) -> Iterator[str]:
    latest, transit = document["latest_list"], document["in_transit"]
    if latest["routing_generation"] != document["routing_generation"]:
        yield f"  the latest list is of{_routing(latest['routing_generation']).removeprefix(',')}"
        yield f"  by which it may enter: {_PROOFS[document['routing_proof']]}"
    if transit is not None:
        yield (
            f"  events in transit from {printable(transit['from'])} to {printable(transit['to'])}:"
            f" {state_words(transit['state'])}, complete {bound_words(transit['complete'])}"
        )
    if document["cap"] is not None:
        yield f"  the list lets the frontier go {bound_words(document['cap'])}"
    yield from _missing_lines(document["missing"])
    if document["ready"]:
        makes = "a run makes it" if document["on_change"] == "cutover" else "the job leaves it to an operator"
        yield f"a cutover is proved{' for the others' if document['missing'] else ''}: {makes}, or `gapless epoch cutover`"
    elif not document["missing"]:
        yield "nothing is to change: the epoch is made of the latest list"


def cutover_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """What was done, or would be, or why nothing was."""
    scope, before, after = printable(document["scope"]), document["from"], document["to"]
    if document["accepted"]:
        moved = (
            f"would go from membership epoch {before} to {after}"
            if document["dry_run"]
            else (f"membership epoch {after} follows {before}")
        )
        yield f"{scope}: {moved}{_routing(document['routing_generation'])}"
        for verb in ("entered", "left", "replaced"):
            if document[verb]:
                yield f"  {verb if not document['dry_run'] else _WOULD[verb]}: {_names(document[verb])}"
        if document["dry_run"]:
            yield "nothing was changed"
    elif document["missing"]:
        yield f"{scope}: refused, membership epoch {before} stands"
    else:
        yield f"{scope}: nothing to change, membership epoch {before} is made of the latest list"
    yield from _missing_lines(document["missing"])


_WOULD = {"entered": "would enter", "left": "would leave", "replaced": "would be replaced"}


def _missing_lines(missing: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from gapless.progress import BLOCKER_CODES

    for one in missing[:SHOWN]:
        whose = "the list" if one["partition"] is None else printable(one["partition"])
        yield f"missing: {whose}: {one['code']}: {printable(one['detail'])}"
    if len(missing) > SHOWN:
        yield f"and {number(len(missing) - SHOWN)} more: --json shows them"
    for code in dict.fromkeys(one["code"] for one in missing):
        yield f"  {code} is released by: {BLOCKER_CODES[code][1]}"


def seal_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """An operator's word, and what comes of it."""
    ends = bound_words(document["sealed"])
    yield (
        f"{printable(document['scope'])}: partition {printable(document['partition'])} ends {ends}, says"
        f" {printable(document['operator'])}: {printable(document['reason'])}"
    )
    if document["dry_run"]:
        yield "nothing was changed"
        return
    yield (
        "once it is read that far it leaves by the next cutover, of a run or `gapless epoch cutover`;"
        " from there on the frontier is labelled asserted"
    )


def rebuild_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The new lineage, what it ends, and what its identity has taken over."""
    begins = "would begin" if document["dry_run"] else "begins"
    yield f"{printable(document['scope'])}: lineage {document['lineage']} {begins}"
    yield f"  {superseded_text(document['superseded'])}"
    for one in document["differences"]:
        yield f"  {printable(one['key'])} was {printable(one['stored'])}, is {printable(one['given'])}"
    if document["dry_run"]:
        yield "nothing was changed"
        return
    yield f"the old files stay listed under `gapless dataset --lineage {document['superseded']['lineage']}`"
    yield "the next run reads everything again from its start: `gapless backfill`"


def _chain_text(row: Mapping[str, Any]) -> str:
    text = f"{printable(row['partition'])}: {state_words(row['state'])}, {bound_words(row['bound'])}"
    if row["sealed"] is not None:
        by = ", by an operator's word" if row["sealed_by"] == "operator" else ""
        text += f"; ends {bound_words(row['sealed'])}{by}"
        if row["successors"]:
            text += f", followed by {_names(row['successors'])}"
    if row["parents"]:
        text += f"; follows {_names(row['parents'])}"
    return text if row["listed"] else f"{text}; no longer listed"


def _routing(generation: str) -> str:
    return f", routing generation {printable(generation)}" if generation else ""


def _names(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(map(printable, names[:SHOWN])) + (f" and {number(more)} more" if more > 0 else "")
