"""What the flights API answers, without any socket: pages, opaque tokens, certificates, and the faults of a real one.

    GET /airports                                  {"routing_generation": "2013", "airports": ["EWR", "JFK", "LGA"]}
    GET /airports/JFK/departures                   the first page
    GET /airports/JFK/departures?cursor=TOKEN      the page after
    GET /airports/JFK/departures?since=INSTANT     what departs after that instant
        {"departures": [...], "next": TOKEN or null, "complete_through": {"position": INSTANT, "inclusive": BOOL}}

Many departures share an instant, so a page may end in the middle of them. Its certificate is inclusive only where the page
holds the last departure of its instant; otherwise it ends before that instant. The last page certifies the whole year.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from http import HTTPStatus

import msgspec

from gapless_pipelines.demo.flights import YEAR_STOP, Departure, Departures

PAGE_SIZE = 500
GENERATION = "2013"
UNAVAILABLE_EVERY = 60
"""Each airport's pages of these numbers answer 503 when they are asked for first."""
EXPIRES_AT = ("LGA", 140)
"""From this page on, the tokens that a reading from the start was given are dead; `since` gives new ones.

The page before it ends between two instants. Were it to end within one, a restart would send its departures again, and a
client that keeps no list of everything it ever saw would have them twice."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status and a JSON body."""

    status: HTTPStatus
    body: bytes


class Served:
    """What was answered so far: how often each departure was, and the faults."""

    def __init__(self, departures: Departures) -> None:
        self._times = {airport: bytearray(len(events)) for airport, events in departures.by_airport.items()}
        self.pages = 0
        self.unavailable = 0
        self.expired = 0

    def count(self, airport: str, start: int, stop: int) -> None:
        """One page of an airport's departures from `start` to before `stop`."""
        self.pages += 1
        times = self._times[airport]
        for index in range(start, stop):
            times[index] += 1

    def as_json(self) -> bytes:
        """`again` by airport: departures that were sent before, counted each time."""
        again = {
            airport: sum(times) - (len(times) - times.count(0)) for airport, times in self._times.items()
        }
        counts = {
            "pages": self.pages,
            "unavailable": self.unavailable,
            "expired": self.expired,
            "again": again,
        }
        return msgspec.json.encode(counts)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a page starts: which airport, its first departure's index, and how often the reading was restarted."""

    airport: str
    index: int
    restarts: int = 0


class FlightsApi:
    """Answers one request at a time. `broken` names a departure whose delay is sent as the text "unknown"."""

    def __init__(self, departures: Departures, broken: str | None = None, page_size: int = PAGE_SIZE) -> None:
        self._departures = departures
        self._broken = broken
        self._page_size = page_size
        self._refused: set[_Place] = set()
        self.served = Served(departures)

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        """Answer `GET path?query`."""
        parts = path.strip("/").split("/")
        if parts == ["airports"]:
            names = list(self._departures.by_airport)
            return _json(HTTPStatus.OK, {"routing_generation": GENERATION, "airports": names})
        if parts == ["served"]:
            return Answer(HTTPStatus.OK, self.served.as_json())
        if len(parts) == 3 and (parts[0], parts[2]) == ("airports", "departures"):
            return self._page(parts[1], query)
        return _json(HTTPStatus.NOT_FOUND, {"error": f"nothing at {path}"})

    def _page(self, airport: str, query: Mapping[str, str]) -> Answer:
        if airport not in self._departures.by_airport:
            return _json(HTTPStatus.NOT_FOUND, {"error": f"no airport {airport}"})
        try:
            place = self._place(airport, query)
        except ValueError as error:
            return _json(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        if place.restarts == 0 and place.airport == EXPIRES_AT[0] and self._number(place) >= EXPIRES_AT[1]:
            self.served.expired += 1
            return _json(HTTPStatus.GONE, {"error": "this cursor has expired; begin again with `since`"})
        if self._number(place) % UNAVAILABLE_EVERY == UNAVAILABLE_EVERY - 1 and place not in self._refused:
            self._refused.add(place)
            self.served.unavailable += 1
            return _json(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "try again"})
        return Answer(HTTPStatus.OK, self._body(place))

    def _number(self, place: _Place) -> int:
        return place.index // self._page_size

    def _place(self, airport: str, query: Mapping[str, str]) -> _Place:
        """Where the page begins that is asked for. Raises ValueError."""
        if "cursor" in query:
            return _read_token(query["cursor"], airport)
        if "since" in query:
            since = datetime.strptime(query["since"], "%Y-%m-%dT%H:%M:%S%z")
            return _Place(airport, self._departures.before(airport, int(since.timestamp()) + 1), restarts=1)
        return _Place(airport, 0)

    def _body(self, place: _Place) -> bytes:
        departures = self._departures.by_airport[place.airport]
        # A page that starts in between is shorter, so that those after it start where they always do.
        stop = min(len(departures), (self._number(place) + 1) * self._page_size)
        last = stop == len(departures)
        token = None if last else _token(_Place(place.airport, stop, place.restarts))
        if last:
            bound = {"position": YEAR_STOP, "inclusive": False}
        else:
            position = departures[stop - 1].position
            bound = {"position": _instant(position), "inclusive": departures[stop].position > position}
        self.served.count(place.airport, place.index, stop)
        events = b",".join(self._sent(departure) for departure in departures[place.index : stop])
        rest = msgspec.json.encode({"next": token, "complete_through": bound})
        return b'{"departures":[' + events + b"]," + rest[1:]

    def _sent(self, departure: Departure) -> bytes:
        if departure.id != self._broken:
            return departure.body
        event = msgspec.json.decode(departure.body)
        return msgspec.json.encode({**event, "dep_delay": "unknown"})


def _json(status: HTTPStatus, value: object) -> Answer:
    return Answer(status, msgspec.json.encode(value))


def _instant(position: int) -> str:
    return datetime.fromtimestamp(position, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _token(place: _Place) -> str:
    """Opaque to the client: it only hands it back. The checksum refuses a token that was made up or cut short."""
    text = f"{place.airport}|{place.index}|{place.restarts}"
    return urlsafe_b64encode(f"{text}|{_checksum(text)}".encode()).decode().rstrip("=")


def _read_token(token: str, airport: str) -> _Place:
    try:
        text, _, checksum = urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().rpartition("|")
    except (Base64Error, UnicodeDecodeError):
        raise ValueError("not a cursor of this API") from None
    if _checksum(text) != checksum or not text.startswith(f"{airport}|"):
        raise ValueError("not a cursor of this API")
    _, index, restarts = text.split("|")
    return _Place(airport, int(index), int(restarts))


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=6, person=b"flights").hexdigest()
