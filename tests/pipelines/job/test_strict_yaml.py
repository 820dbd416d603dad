"""YAML as a tree of JSON values: what is read, what is refused, and on which line."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless_pipelines.findings import InvalidConfiguration
from gapless_pipelines.job.document import Document, parse_document


def read(text: str, **environment: str) -> Document:
    return parse_document(text, "job.yaml", environment)


def refused(text: str, **environment: str) -> str:
    """The findings, of which there has to be at least one."""
    try:
        findings = read(text, **environment).findings
    except InvalidConfiguration as error:
        findings = error.findings
    assert findings
    return "\n".join(map(str, findings))


def test_only_the_scalars_of_json_are_more_than_text() -> None:
    text = "[NO, on, yes, True, 0123, 1_000, 12:30:45, 0x1F, 1., .5, +1, .inf, 2013-01-01, 10, -1.5, 1e3, true, null, ~]"

    assert read(f"list: {text}").value["list"] == [
        *(
            "NO",
            "on",
            "yes",
            "True",
            "0123",
            "1_000",
            "12:30:45",
            "0x1F",
            "1.",
            ".5",
            "+1",
            ".inf",
            "2013-01-01",
        ),
        *(10, -1.5, 1000.0, True, None, None),
    ]


def test_integers_are_exact_at_any_size() -> None:
    assert read("start: 123456789012345678901234567890").value == {"start": 123456789012345678901234567890}


def test_quoted_scalars_are_text() -> None:
    assert read("""a: "5"\nb: 'true'\nc: "null"\nd: ""\n""").value == {
        "a": "5",
        "b": "true",
        "c": "null",
        "d": "",
    }


def test_keys_are_text_whatever_they_look_like() -> None:
    assert read("{on: 1, 5: 2, null: 3}").value == {"on": 1, "5": 2, "null": 3}


words = st.text("aZ\u00e9\u4e2d\U0001f600 \"'\\:#{}[],&*!|>%@`$-?~0.\n\t/", max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(words, json_values, min_size=1, max_size=4), st.booleans())
def test_every_json_object_is_read_as_json_reads_it(value: dict[str, object], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    expected = json.loads(text)

    document = read(json.dumps(doubled_dollars(value), ensure_ascii=ascii_only))

    assert document.value == expected
    assert document.findings == []


def doubled_dollars(value: object) -> object:
    """In values, not in keys, which are never replaced."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, list):
        return [doubled_dollars(item) for item in value]
    return {key: doubled_dollars(item) for key, item in value.items()} if isinstance(value, dict) else value


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_by_findings(text: str) -> None:
    try:
        kept = bool(read(text).value)
    except InvalidConfiguration as error:
        kept = bool(error.findings)

    assert kept


def test_lines_are_kept_for_keys_values_and_items() -> None:
    lines = read("a: 1\nb:\n  c:\n    - x\n    - y: {z: 1,\n       w: 2}\n").lines

    assert lines[("a",)] == 1
    assert lines[("b",)] == 2
    assert lines[("b", "c")] == 3
    assert lines[("b", "c", 0)] == 4
    assert lines[("b", "c", 1, "y", "w")] == 6


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a: &x 1\n", "job.yaml:1: a: has a YAML anchor (&)"),
        ("a: 1\nb: *x\n", "job.yaml:2: b: is a YAML alias (*)"),
        ("a:\n  <<: {b: 1}\n", 'job.yaml:2: a."<<": is a YAML merge key'),
        ("a: !!str 5\n", "job.yaml:1: a: has a YAML tag (!)"),
        ("a: !!python/object/apply:os.system [echo]\n", "job.yaml:1: a: has a YAML tag (!)"),
        ("a: !mine {b: 1}\n", "job.yaml:1: a: has a YAML tag (!)"),
        ("? [a]\n: 1\nb: 2\n", "job.yaml:1: (top level): has a key that is no text"),
        ("a: 1\na: 2\n", "job.yaml:2: a: is given twice, first on line 1"),
        ("a: {b: 1}\n---\na: 2\n", "job.yaml:2: (top level): a second YAML document begins"),
        ("a:\n\tb: 1\n", "job.yaml:2: (top level): is not YAML here:"),
        ("a: [1, 2\nb: 3\n", "job.yaml:2: (top level): is not YAML here:"),
        ("a: 'x\n", "job.yaml:2: (top level): is not YAML here:"),
        ("a: 1\nb: \x07\n", "job.yaml:2: (top level): holds the character U+0007"),
        ("- a\n- b\n", "job.yaml:1: (top level): is a list; a mapping that begins with `version: 1`"),
        ("just words\n", "job.yaml:1: (top level): is text; a mapping"),
        ("5\n", "job.yaml:1: (top level): is an integer; a mapping"),
        ("", "job.yaml:1: (top level): is empty; a mapping"),
        ("# only a comment\n", "job.yaml:1: (top level): is empty; a mapping"),
        ("{}\n", "job.yaml:1: (top level): is empty; a mapping"),
        ("a: 1e999\n", "job.yaml:1: a: is a number too large to be exact"),
        (f"a: {'9' * 5000}\n", "job.yaml:1: a: is a number of 5000 digits"),
        ('a: "\\ud83d"\n', "job.yaml:1: a: holds half of a surrogate pair"),
    ],
)
def test_what_is_no_tree_of_json_values_is_refused(text: str, finding: str) -> None:
    assert refused(text).startswith(finding)


def test_a_tab_in_the_indentation_is_named() -> None:
    assert refused("a:\n\tb: 1\n").endswith("spaces for indentation, no tabs")


def test_several_refusals_are_told_together() -> None:
    findings = refused("a: &x 1\nb: *x\nc: !t 1\nc: 2\n")

    assert [line.split(":")[1] for line in findings.splitlines()] == ["1", "2", "3", "4"]


@pytest.mark.timeout(5)
@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_beyond_all_use_is_refused_at_once(opening: str) -> None:
    assert "is nested deeper than 32 levels" in refused("a: " * (opening == "{a: ") + opening * 200_000)


@pytest.mark.timeout(5)
def test_a_bomb_of_aliases_does_not_go_off() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 100))

    assert len(refused(bomb).splitlines()) == 100 + 2 * 99


def test_pairs_of_surrogates_are_one_character_as_in_json() -> None:
    assert read(r'a: "\ud83d\ude00"').value == {"a": "\U0001f600"}


# --- variables -------------------------------------------------------------------------------------------------------


def test_a_variable_stands_anywhere_in_a_value() -> None:
    value = read('a: http://${HOST}:${PORT}/\nb: ["x-${HOST}"]\n', HOST="api", PORT="80").value

    assert value == {"a": "http://api:80/", "b": ["x-api"]}


def test_an_unquoted_variable_is_a_number_where_it_holds_one_and_a_quoted_one_never() -> None:
    assert read('a: ${N}\nb: "${N}"\nc: ${T}\n', N="5", T="true").value == {"a": 5, "b": "5", "c": True}


def test_two_dollars_are_one_and_a_lone_one_is_itself() -> None:
    assert read("a: $$ $x $.items $${HOST} $$$${HOST}").value == {"a": "$ $x $.items ${HOST} $${HOST}"}


def test_what_a_variable_holds_is_text_and_no_yaml() -> None:
    evil = "x\nb: {c: *d} ${OTHER} # $$"

    assert read("a: ${EVIL}", EVIL=evil).value == {"a": evil}


def test_a_variable_set_to_nothing_is_set() -> None:
    assert read('a: "${EMPTY}"', EMPTY="").value == {"a": ""}


def test_keys_are_not_expanded() -> None:
    assert read('"${NAME}": 1', NAME="a").value == {"${NAME}": 1}


def test_unset_variables_are_kept_apart_with_their_lines() -> None:
    document = read("a: 1\nb: ${ONE}${TWO}\n")

    assert document.findings == []
    assert [str(finding).split("; ")[0] for finding in document.unset[("b",)]] == [
        "job.yaml:2: b: the environment variable ONE is not set",
        "job.yaml:2: b: the environment variable TWO is not set",
    ]


@pytest.mark.parametrize("written", ["${}", "${A B}", "${A:-b}", "${1A}", '"${A"'])
def test_what_is_no_variable_is_refused_and_not_repeated(written: str) -> None:
    finding = refused(f"a: {written}\n", A="x")

    assert finding.startswith("job.yaml:1: a: holds `${` without the name of a variable; write ${NAME}")


@pytest.mark.parametrize("flow", ["{url: ${URL}}", "[x-${URL}]"])
def test_a_variable_inside_braces_or_brackets_asks_for_quotes(flow: str) -> None:
    assert refused(f"a: {flow}\n", URL="x").endswith(
        'a value with ${...} inside { } or [ ] stands in quotes: "${NAME}"'
    )
