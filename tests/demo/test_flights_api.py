"""The demo's API keeps its promises: its certificates are true, its faults are those it announces."""

from http import HTTPStatus
from typing import Any

import msgspec

from gapless_pipelines.demo import flights_api
from gapless_pipelines.demo.flights import YEAR_STOP, Departure, Departures
from gapless_pipelines.demo.flights_api import Answer, FlightsApi

START = 1_357_016_400


def _departures(airport: str, minutes: list[int]) -> Departures:
    """Departures at these minutes of the year."""
    events = []
    for number, minute in enumerate(minutes):
        name = f"{airport}-{number}"
        body = msgspec.json.encode({"id": name, "dep_delay": 0})
        events.append(Departure(START + 60 * minute, name, body))
    return Departures({airport: events})


def _read(api: FlightsApi, airport: str, query: dict[str, str]) -> dict[str, Any]:
    answer = _served(api, airport, query)
    assert answer.status == HTTPStatus.OK
    page: dict[str, Any] = msgspec.json.decode(answer.body)
    return page


def _served(api: FlightsApi, airport: str, query: dict[str, str]) -> Answer:
    return api.answer(f"/airports/{airport}/departures", query)


def _pages(api: FlightsApi, airport: str) -> list[dict[str, Any]]:
    pages = [_read(api, airport, {})]
    while (token := pages[-1]["next"]) is not None:
        pages.append(_read(api, airport, {"cursor": token}))
    return pages


def test_a_page_that_holds_all_of_its_last_instant_certifies_it_and_another_ends_before_it() -> None:
    pages = _pages(FlightsApi(_departures("JFK", [1, 2, 2, 2, 3, 4]), page_size=2), "JFK")
    assert [page["complete_through"] for page in pages] == [
        {"position": "2013-01-01T05:02:00Z", "inclusive": False},
        {"position": "2013-01-01T05:02:00Z", "inclusive": True},
        {"position": YEAR_STOP, "inclusive": False},
    ]


def test_the_chain_of_pages_holds_every_departure_once_and_in_order() -> None:
    departures = _departures("JFK", [n // 3 for n in range(101)])
    ids = [e["id"] for page in _pages(FlightsApi(departures, page_size=7), "JFK") for e in page["departures"]]
    assert ids == [event.id for event in departures.by_airport["JFK"]]


def test_since_goes_on_after_an_instant_and_meets_the_later_pages_where_they_always_start() -> None:
    api = FlightsApi(_departures("JFK", [1, 2, 2, 3, 4, 5]), page_size=4)
    page = _read(api, "JFK", {"since": "2013-01-01T05:01:00Z"})
    assert [event["id"] for event in page["departures"]] == ["JFK-1", "JFK-2", "JFK-3"]
    after = _read(api, "JFK", {"cursor": page["next"]})
    assert [event["id"] for event in after["departures"]] == ["JFK-4", "JFK-5"]


def test_some_pages_are_unavailable_once() -> None:
    api = FlightsApi(_departures("JFK", list(range(flights_api.UNAVAILABLE_EVERY))), page_size=1)
    token: str | None = None
    statuses = []
    for _ in range(flights_api.UNAVAILABLE_EVERY + 1):
        answer = _served(api, "JFK", {"cursor": token} if token else {})
        statuses.append(answer.status)
        if answer.status == HTTPStatus.OK:
            token = msgspec.json.decode(answer.body)["next"]
    assert token is None
    assert [n for n, status in enumerate(statuses) if status == HTTPStatus.SERVICE_UNAVAILABLE] == [
        flights_api.UNAVAILABLE_EVERY - 1
    ]


def test_a_token_expires_for_good_and_since_gives_tokens_that_live() -> None:
    airport, number = flights_api.EXPIRES_AT
    api = FlightsApi(_departures(airport, list(range(number + 5))), page_size=1)
    token, reads = None, 0
    while True:
        answer = _served(api, airport, {"cursor": token} if token else {})
        if answer.status == HTTPStatus.GONE:
            break
        if answer.status == HTTPStatus.OK:
            page, reads = msgspec.json.decode(answer.body), reads + 1
            token = page["next"]
    assert reads == number
    assert _served(api, airport, {"cursor": str(token)}).status == HTTPStatus.GONE
    restarted = _read(api, airport, {"since": page["complete_through"]["position"]})
    assert restarted["departures"][0]["id"] == f"{airport}-{number}"
    assert (
        _read(api, airport, {"cursor": restarted["next"]})["departures"][0]["id"] == f"{airport}-{number + 1}"
    )


def test_tokens_are_refused_where_they_were_not_given() -> None:
    api = FlightsApi(_departures("JFK", [1, 2, 3]), page_size=1)
    token = _read(api, "JFK", {})["next"]
    assert _served(api, "JFK", {"cursor": token[:-2]}).status == HTTPStatus.BAD_REQUEST
    assert _served(api, "JFK", {"cursor": "?"}).status == HTTPStatus.BAD_REQUEST
    assert _served(api, "JFK", {"since": "yesterday"}).status == HTTPStatus.BAD_REQUEST
    assert _served(api, "LGA", {"cursor": token}).status == HTTPStatus.NOT_FOUND


def test_departures_sent_again_are_counted_each_time() -> None:
    api = FlightsApi(_departures("JFK", [1, 2, 3]), page_size=2)
    first = _read(api, "JFK", {})
    _read(api, "JFK", {"cursor": first["next"]})
    assert msgspec.json.decode(api.served.as_json())["again"] == {"JFK": 0}
    _read(api, "JFK", {})
    _read(api, "JFK", {})
    assert msgspec.json.decode(api.answer("/served", {}).body)["again"] == {"JFK": 4}


def test_the_broken_departure_is_sent_with_a_delay_that_is_no_number_and_no_other_is() -> None:
    page = _read(FlightsApi(_departures("JFK", [1, 2]), broken="JFK-1"), "JFK", {})
    assert [event["dep_delay"] for event in page["departures"]] == [0, "unknown"]
