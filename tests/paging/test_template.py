from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.paging.template import Template, TemplateSyntaxError, TemplateValueError

ENCODABLE = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(ENCODABLE)
def test_a_value_stays_within_its_segment_and_can_be_read_back(value: str) -> None:
    template = Template.parse("/p/{partition.id}/events")
    path = template.path({"partition.id": value}) if value not in {".", ".."} else "/p/x/events"
    _, p, segment, events = path.split("/")
    assert (p, events) == ("p", "events")
    assert "?" not in segment
    assert "#" not in segment
    assert value in {".", ".."} or unquote(segment) == value


@given(ENCODABLE, ENCODABLE)
def test_values_are_never_read_as_templates(one: str, other: str) -> None:
    filled = Template.parse("{partition.a}|{partition.b}").plain({"partition.a": one, "partition.b": other})
    assert filled == f"{one}|{other}"


@pytest.mark.parametrize(
    "text", ["{id}", "{partition}", "{partition.}", "{partition.a.b}", "{start:>10}", "{}", "{now()}"]
)
def test_nothing_but_the_known_places_may_stand_in_braces(text: str) -> None:
    with pytest.raises(
        TemplateSyntaxError, match=r"is unknown; allowed in braces: partition.<field>, start, stop"
    ):
        Template.parse(f"/p/{text}")


@pytest.mark.parametrize("text", ["{", "}", "a{b", "{{start}}", "{start}}"])
def test_a_single_brace_is_an_error(text: str) -> None:
    with pytest.raises(TemplateSyntaxError):
        Template.parse(text)


@pytest.mark.parametrize(
    ("value", "there"),
    [(None, "nothing"), ("", "an empty text"), (1.5, "a float"), ([1], "a list"), ({"a": 1}, "a dict")],
)
def test_only_text_integers_and_booleans_can_be_put_in(value: object, there: str) -> None:
    with pytest.raises(TemplateValueError, match=rf"{{partition\.id}} has {there} to put there"):
        Template.parse("/{partition.id}").path({"partition.id": value})


def test_integers_of_any_size_and_booleans_are_written_as_in_json() -> None:
    values: dict[str, object] = {"partition.n": 2**80, "partition.b": True, "start": 0}
    assert Template.parse("{partition.n} {partition.b} {start}").plain(values) == f"{2**80} true 0"


@pytest.mark.parametrize("value", [".", ".."])
def test_a_value_that_would_climb_out_of_its_path_is_refused(value: str) -> None:
    with pytest.raises(TemplateValueError, match="segment"):
        Template.parse("/p/{partition.id}/events").path({"partition.id": value})
    assert Template.parse("/p/x{partition.id}").path({"partition.id": value}) == f"/p/x{value}"


def test_the_fields_it_needs_are_known() -> None:
    assert Template.parse("/{partition.a}/{start}/{partition.b}").partition_fields == ("a", "b")
