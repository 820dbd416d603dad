"""The byte formats of settling in the pipeline: pinned, exact both ways, and refused where another version wrote them."""

from dataclasses import dataclass, replace
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from apache_beam.coders.coders import Coder
from apache_beam.coders.typecoders import registry
from hypothesis import given
from hypothesis import strategies as st
from progress_strategies import bounds_in, domains, positions

from gapless import page_format
from gapless.emitted_page import EmittedPage, LetterOf, Outcome, ReaderStop
from gapless.errors import StoreNewer
from gapless.outcomes import example_page
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
from gapless.tracking.log_entry import LogEntry
from gapless.updates import PartitionProgress, ReadTask

NOON = datetime(2024, 5, 17, 12, 0, tzinfo=timezone.utc)
TASK = ReadTask("orders", IntegerDomain(), 7, "p1", "{}", 3, 1, 2, 8, True, "r-1")
PAGE = EmittedPage(
    task=TASK,
    attempt="a1",
    number=4,
    start_token="t4",
    next_token=None,
    ids=["x", "y"],
    positions=[1 << 70, 5],
    rows=[{"n": 1 << 70, "é": None}, {"f": 1.5}],
    certificate=Certificate(Bound.through(9), "page"),
    generation="g",
    violations=[PageViolation("event_behind_bound", "late", "y", 5, Bound.before(7))],
    settled={"y": Terminal.DEAD_LETTERED, "x": Terminal.DELIVERED},
)
STOP = EmittedPage(
    TASK, "", 5, "t5", "t5", stop=ReaderStop("t5", ChainState.GAP, "token_expired", "410", NOON)
)
PROGRESS = PartitionProgress(
    "orders", IntegerDomain(), 7, "p1", 1, 2, 8, True, ChainState.OPEN, 3, 4, 9, Bound.through(9), "certified"
)
OUTCOME = Outcome("orders", 7, "a1", ("x",), (LetterOf("x", 1 << 70, "no", "{}"),), (1, 2), 1 << 70, 4)


@dataclass(frozen=True)
class Format:
    coder: Coder
    value: Any
    pinned: str


FORMATS = {
    "page": Format(
        page_format.EmittedPageCoder(),
        PAGE,
        (
            "01dc0010c42c019ba66f7264657273b27b2274797065223a22696e7465676572227d07a27031a27b7d03010208c3a372"
            "2d31a2613104a27434c092a178a1790192c40a89400000000000000000c402810500c4325b7b226e223a313138303539"
            "313632303731373431313330333432342c22c3a9223a6e756c6c7d2c7b2266223a312e357d5d9300c403810902a47061"
            "6765a1679195b26576656e745f626568696e645f626f756e64a46c617465a179c4028105c4038107019292a178a96465"
            "6c69766572656492a179ad646561645f6c65747465726564c0c0"
        ),
    ),
    "stop": Format(
        page_format.EmittedPageCoder(),
        STOP,
        (
            "01dc0010c42c019ba66f7264657273b27b2274797065223a22696e7465676572227d07a27031a27b7d03010208c3a372"
            "2d31a005a27435a2743590009000c4025b5dc0a090c0c095a27435a3676170ad746f6b656e5f65787069726564a33431"
            "30d6ff664746c0"
        ),
    ),
    "told": Format(
        page_format.EmittedPageCoder(),
        EmittedPage(TASK, "", 4, "t4", "t4", progress=PROGRESS),
        (
            "01dc0010c42c019ba66f7264657273b27b2274797065223a22696e7465676572227d07a27031a27b7d03010208c3a372"
            "2d31a004a27434a2743490009000c4025b5dc0a090c0c43f01dc0010a66f7264657273b27b2274797065223a22696e74"
            "65676572227d07a27031010208c3a46f70656e030409c403810902a9636572746966696564c0c0c0"
        ),
    ),
    "outcome": Format(
        page_format.OutcomeCoder(),
        OUTCOME,
        (
            "0199a66f726465727307a2613191a1789194a178c40a89400000000000000000a26e6fa27b7d0102c40a894000000000"
            "0000000004"
        ),
    ),
    "whole outcome": Format(
        page_format.OutcomeCoder(), Outcome("orders", 7, "a1", None), "0199a66f726465727307a26131c0900001c0c0"
    ),
    "page in a log": Format(
        page_format.LogEntryCoder(),
        LogEntry(replace(PAGE, rows=())),
        (
            "01dc0010c42c019ba66f7264657273b27b2274797065223a22696e7465676572227d07a27031a27b7d03010208c3a372"
            "2d31a2613104a27434c092a178a1790192c40a89400000000000000000c402810500c4025b5d9300c403810902a47061"
            "6765a1679195b26576656e745f626568696e645f626f756e64a46c617465a179c4028105c4038107019292a178a96465"
            "6c69766572656492a179ad646561645f6c65747465726564c0c0"
        ),
    ),
    "outcome in a log": Format(
        page_format.LogEntryCoder(),
        LogEntry(OUTCOME),
        (
            "0199a66f726465727307a2613191a1789194a178c40a89400000000000000000a26e6fa27b7d0102c40a894000000000"
            "0000000004"
        ),
    ),
    "head of a log": Format(
        page_format.LogHeadCoder(),
        page_format.LogHead(b"0123456789ab", 17),
        "0192c40c30313233343536373839616211",
    ),
}
each_format = pytest.mark.parametrize("name", FORMATS)


@each_format
def test_the_bytes_are_pinned(name: str) -> None:
    each = FORMATS[name]
    assert each.coder.encode(each.value).hex() == each.pinned


@each_format
def test_what_is_decoded_is_what_was_encoded(name: str) -> None:
    each = FORMATS[name]
    assert each.coder.decode(bytes.fromhex(each.pinned)) == each.value
    assert each.coder.is_deterministic()


@each_format
def test_bytes_of_another_version_are_refused(name: str) -> None:
    each = FORMATS[name]
    with pytest.raises(StoreNewer, match="state format 02"):
        each.coder.decode(b"\x02" + bytes.fromhex(each.pinned)[1:])


@pytest.mark.parametrize("kind", [EmittedPage, Outcome, LogEntry])
def test_beam_uses_these_coders(kind: type) -> None:
    assert type(registry.get_coder(kind)).__module__ == "gapless.page_format"


ODD_ROWS = [
    {"nan": float("nan"), "inf": float("-inf")},
    {"when": NOON, "bytes": b"\x00\xff", "tuple": (1, "a"), "exact": Decimal("1.10")},
    {"half": "\ud800", 1: "a key that is no text"},
]


@pytest.mark.parametrize("row", ODD_ROWS)
def test_rows_that_json_does_not_know_come_back_as_they_were(row: Any) -> None:
    coder = page_format.EmittedPageCoder()
    back = coder.decode(coder.encode(replace(PAGE, rows=[row, {}])))
    assert repr(list(back.rows)) == repr([row, {}])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 200), 1 << 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(max_size=4), json_values, max_size=4), max_size=4))
def test_rows_keep_every_field_and_every_number(rows: list[dict[str, Any]]) -> None:
    coder = page_format.EmittedPageCoder()
    page = replace(
        example_page(), ids=[str(n) for n in range(len(rows))], positions=[0] * len(rows), rows=rows
    )
    back = coder.decode(coder.encode(page))
    assert repr(list(back.rows)) == repr(rows)
    assert coder.encode(back) == coder.encode(page)


@given(st.data())
def test_positions_and_bounds_of_every_domain_come_back(data: st.DataObject) -> None:
    domain = data.draw(domains)
    at = data.draw(st.lists(positions(domain), max_size=3))
    bound = data.draw(bounds_in(domain))
    certificate = data.draw(st.sampled_from([None, Certificate(bound, "page"), Assertion(bound, "so")]))
    page = replace(
        PAGE,
        task=replace(TASK, domain=domain),
        ids=[str(n) for n in range(len(at))] or (),
        positions=at or (),
        rows=[{}] * len(at) or (),
        certificate=certificate,
        violations=[PageViolation("certificate_went_back", "so", None, at[0] if at else None, bound)],
        settled=None,
    )
    coder = page_format.EmittedPageCoder()
    back = coder.decode(coder.encode(page))
    assert back == page
    assert [type(position) for position in back.positions] == [type(position) for position in at]
    outcome = replace(OUTCOME, read_through=max(at, default=None), letters=())
    assert page_format.OutcomeCoder().decode(page_format.OutcomeCoder().encode(outcome)) == outcome


@pytest.mark.parametrize(
    ("domain", "at"),
    [(TextDomain(), ["a", ""]), (ListDomain((IntegerDomain(), TextDomain())), [(1, "a"), (1 << 80, "b")])],
)
def test_positions_of_other_kinds_are_no_integers(domain: Any, at: Any) -> None:
    page = replace(
        PAGE, task=replace(TASK, domain=domain), positions=at, certificate=None, violations=[], settled=None
    )
    assert page_format.EmittedPageCoder().decode(page_format.EmittedPageCoder().encode(page)).positions == at
