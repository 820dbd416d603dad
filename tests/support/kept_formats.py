"""Bytes as versions of gapless have written them, kept for ever: a job that is updated, or a store, may still hold them.

Run as a program after a coder has got a new format version, or a new coder came. It writes what is not there yet, each into the
folder of its version, and never changes a file that is there:

    python tests/support/kept_formats.py
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from apache_beam.coders.coders import Coder
from apache_beam.io.restriction_trackers import OffsetRange

from gapless import page_format, state_format, stream_format
from gapless.emitted_page import EmittedPage, LetterOf, Outcome, ReaderStop
from gapless.page_restriction import PageRestriction
from gapless.paging.chain import PageViolation
from gapless.progress import (
    Assertion,
    Bound,
    Certificate,
    ChainState,
    IntegerDomain,
    ListDomain,
    Terminal,
    TextDomain,
)
from gapless.progress_merge import FrontierHint, MembersSeen
from gapless.settling.emitting import ReadingPoint
from gapless.settling.stream_state import StreamState
from gapless.store.records import Blocker, DeadLetter
from gapless.tracking.log_entry import LogEntry
from gapless.updates import FrontierUpdate, PartitionProgress, PlannedTasks, PlanRequest, ReadTask
from gapless.watching import WatchState

FOLDER = Path(__file__).parents[1] / "beam" / "kept"
FORMATS = (state_format, page_format, stream_format)

_INTEGER = IntegerDomain()
_PAIR = ListDomain((IntegerDomain(), TextDomain()))
_NOON = datetime(2026, 7, 23, 12, 0, 0, 250, tzinfo=timezone.utc)
_TASK = ReadTask("orders", _INTEGER, 7, "p1", '{"region":1}', 3, 1, 2, 8, True, "r-1")
_PROGRESS = PartitionProgress(
    scope="orders",
    domain=_INTEGER,
    chain=7,
    partition="p1",
    lineage=1,
    epoch=2,
    members=8,
    member=True,
    state=ChainState.HELD,
    fencing_token=3,
    sequence=50,
    events=50_000,
    bound=Bound.through(2**70),
    basis="certified",
    blocker="unsettled_event",
    blocker_hint="ValueError: é",
)
_PAGE = EmittedPage(
    task=_TASK,
    attempt="a-1",
    number=4,
    start_token="t4",
    next_token=None,
    ids=("e1", "e2"),
    positions=(10, 2**70),
    rows=({"id": "e1", "n": 2**70}, {"id": "e2", "n": None}),
    certificate=Certificate(Bound.through(2**70), "page"),
    generation="g1",
    violations=(PageViolation("event_behind_bound", "e1 at 10", "e1", 10, Bound.through(9)),),
    settled={"e1": Terminal.DEAD_LETTERED},
)
_LETTERS = (LetterOf("e2", 2**70, "ValueError: no", '{"id":"e2"}'),)
_OUTCOME = Outcome("orders", 7, "a-1", ("e1", "e2"), _LETTERS, (1, 2), 2**70, 4)


def samples() -> Mapping[str, tuple[Coder, Any]]:
    """A value of every coder, by a name of its own; where a format has forms, one of each."""
    seen = MembersSeen()
    seen.add(_PROGRESS)
    pair = ReadTask("orders", _PAIR, 8, "p\udcff", "{}", 3, 1, 2, 8, False, "r-1", "transit")
    structured = EmittedPage(
        pair,
        "a-2",
        0,
        ids=("e1",),
        positions=((1, "ü"),),
        rows=({"at": _NOON},),
        certificate=Assertion(Bound.before((2, "")), "settled by then"),
    )
    stopped = EmittedPage(_TASK, "", 5, stop=ReaderStop("t5", ChainState.GAP, "token_expired", "410", _NOON))
    point = ReadingPoint("t7", 7, Bound.before(10), Bound.through((2**70, "ü")), ended=True)
    update = FrontierUpdate(
        "orders", _INTEGER, 1, 2, Bound.before(0), Bound.through(2**70), "asserted", "unsettled_event",
        (("p1", Blocker("unsettled_event", "no", "e1", 110, _NOON, None)),),
    )  # fmt: skip
    letter = DeadLetter(
        "p1", 4, "e1", (2**70, "b"), "ValueError: no", '{"id":1}', "/dead/1.parquet", "ops", _NOON
    )
    page, log, stream = (
        page_format.EmittedPageCoder(),
        page_format.LogEntryCoder(),
        stream_format.StreamStateCoder(),
    )
    return {
        "plan request": (state_format.PlanRequestCoder(), PlanRequest("orders", "r-1", "local", False)),
        "read task": (state_format.ReadTaskCoder(), _TASK),
        "read task in transit": (state_format.ReadTaskCoder(), pair),
        "planned tasks": (state_format.PlannedTasksCoder(), PlannedTasks((_TASK, pair))),
        "offset range": (state_format.OffsetRangeCoder(), OffsetRange(3, 64)),
        "page restriction": (state_format.PageRestrictionCoder(), PageRestriction(done=True)),
        "partition progress": (state_format.PartitionProgressCoder(), _PROGRESS),
        "frontier update": (state_format.FrontierUpdateCoder(), update),
        "dead letter": (state_format.DeadLetterCoder(), letter),
        "members seen": (state_format.MembersSeenCoder(), seen),
        "frontier hint": (
            state_format.FrontierHintCoder(),
            FrontierHint("orders", _INTEGER, 2, Bound.before(90), 1),
        ),
        "page": (page, _PAGE),
        "page of structured positions": (page, structured),
        "page that is none but progress": (page, EmittedPage(_TASK, "", 0, progress=_PROGRESS)),
        "page that is none but a stop": (page, stopped),
        "outcome": (page_format.OutcomeCoder(), _OUTCOME),
        "outcome of a whole attempt": (page_format.OutcomeCoder(), Outcome("orders", 7, "a-1", None)),
        "log entry of a page": (log, LogEntry(_PAGE)),
        "log entry of an outcome": (log, LogEntry(_OUTCOME)),
        "head of a log": (page_format.LogHeadCoder(), page_format.LogHead(bytes(range(12)), 5)),
        "stream": (stream, StreamState(point, b"12345678", "g1", 3, 6, _NOON, 2)),
        "stream at its start": (stream, StreamState()),
        "watch": (stream_format.WatchStateCoder(), WatchState(3, 300, (7, 8), 2, done=True)),
    }


def coders() -> set[str]:
    """Every coder of gapless's own."""
    return {
        name
        for module in FORMATS
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, Coder)
        and value.__module__ == module.__name__
        and value is not state_format.Deterministic
    }


def said(value: Any) -> dict[str, str]:
    """A value as its leaves: path -> Python text. A later version may say more of it, and nothing else."""
    return dict(_leaves(value, ""))


def _leaves(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if is_dataclass(value) and not isinstance(value, type | Bound):
        for one in fields(value):
            yield from _leaves(getattr(value, one.name), f"{at}.{one.name}")
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield from _leaves(value[key], f"{at}[{key!r}]")
    elif isinstance(value, list | tuple):
        yield f"{at}.length", str(len(value))
        for number, one in enumerate(value):
            yield from _leaves(one, f"{at}[{number}]")
    else:
        yield at, repr(value)


def main() -> None:
    for name, (coder, value) in samples().items():
        encoded = coder.encode(value)
        path = FOLDER / str(encoded[0]) / f"{name}.json"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {
            "coder": type(coder).__name__,
            "bytes": encoded.hex(),
            "says": said(coder.decode(encoded)),
        }
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(FOLDER)}\n")


if __name__ == "__main__":
    main()
