import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.paging.json_path import JsonPath, PathAbsentError, PathSyntaxError, describe

NAMES = st.text(min_size=1, max_size=8)
STEPS = st.lists(st.one_of(NAMES, st.integers(0, 3)), max_size=5)


def spelled(steps: list[str | int]) -> str:
    text = "$"
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            quoted = step.replace("\\", "\\\\").replace("'", "\\'")
            text += f"['{quoted}']"
    return text


def nested(steps: list[str | int], leaf: object) -> object:
    for step in reversed(steps):
        leaf = [None] * step + [leaf] if isinstance(step, int) else {"other": 1, step: leaf}
    return leaf


@given(STEPS, st.one_of(st.integers(), st.text(), st.booleans()))
def test_a_path_finds_what_was_put_at_it(steps: list[str | int], leaf: object) -> None:
    assert JsonPath.parse(spelled(steps)).find(nested(steps, leaf)) == leaf


@given(STEPS.filter(bool))
def test_taking_the_last_step_away_makes_the_path_absent(steps: list[str | int]) -> None:
    gone = nested(steps[:-1], [] if isinstance(steps[-1], int) else {"another name": 1})
    if steps[-1] == "another name":
        return
    with pytest.raises(PathAbsentError):
        JsonPath.parse(spelled(steps)).find(gone)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ("a",)),
        ("a.b-c.d_1", ("a", "b-c", "d_1")),
        ("a[0].b", ("a", 0, "b")),
        ("$.a['b.c'][2]", ("a", "b.c", 2)),
        ('$["it\'s"]', ("it's",)),
        (r"$['it\'s']", ("it's",)),
        ("$[1]", (1,)),
        ("@", ()),
        ("$", ()),
    ],
)
def test_both_spellings_are_read(text: str, steps: tuple[str | int, ...]) -> None:
    assert JsonPath.parse(text).steps == steps


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        ".a",
        "a..b",
        "$..a",
        "a[*]",
        "a[-1]",
        "a[",
        "a b",
        "$a",
        "$['a'",
        "a[?(@.b)]",
        "a['']x",
        "@.a",
    ],
)
def test_what_names_no_single_place_is_no_path(text: str) -> None:
    with pytest.raises(PathSyntaxError, match="allowed: dotted names"):
        JsonPath.parse(text)


def test_the_element_itself_is_a_path() -> None:
    assert JsonPath.parse("@").find("p0001") == "p0001"


def test_null_is_a_value_and_so_is_what_lies_below_it() -> None:
    assert JsonPath.parse("a").find({"a": None}) is None
    assert JsonPath.parse("a.b.c").find({"a": None}) is None


def test_an_absent_path_names_itself_the_keys_there_and_the_likely_one() -> None:
    with pytest.raises(PathAbsentError) as absent:
        JsonPath.parse("page.next_cursor").find({"page": {"next_cursors": 1, "events": []}})
    assert str(absent.value) == (
        "`page.next_cursor` is absent (up to `page` it is there); the keys there: next_cursors, events; "
        "did you mean `next_cursors`?"
    )


@pytest.mark.parametrize(
    ("value", "there"),
    [
        ([], "an array of 0"),
        ("t", "the text 't'"),
        (7, "the number 7"),
        (True, "the boolean true"),
        ({}, "no keys"),
    ],
)
def test_an_absent_path_says_what_is_there_instead(value: object, there: str) -> None:
    with pytest.raises(PathAbsentError, match=there):
        JsonPath.parse("a").find(value)


def test_long_keys_and_many_of_them_are_cut_short_in_messages() -> None:
    with pytest.raises(PathAbsentError) as absent:
        JsonPath.parse("zzz").find({f"{'k' * 100}{n}": n for n in range(50)})
    assert "and 38 more" in str(absent.value)
    assert len(str(absent.value)) < 1000


def test_in_many_rows_the_one_without_the_path_is_named() -> None:
    rows = [{"id": 1}, {"id": None}, {"ident": 3}]
    with pytest.raises(PathAbsentError, match=r"^\[2\]: `id` is absent; the keys there: ident"):
        JsonPath.parse("id").find_in_each(rows)
    assert JsonPath.parse("id").find_in_each(rows[:2]) == [1, None]
    with pytest.raises(PathAbsentError, match=r"^\[1\]: `a.b` is absent"):
        JsonPath.parse("a.b").find_in_each([{"a": {"b": 1}}, {"a": {}}])


@given(st.text(max_size=500))
def test_a_value_is_described_in_short(text: str) -> None:
    assert len(describe(text)) < 80
