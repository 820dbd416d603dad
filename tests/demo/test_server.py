"""The demo's API as a process: it serves real HTTP on loopback and ends with its standard input."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import msgspec
import pytest
import requests

from gapless.errors import ConfigurationError
from gapless_pipelines.demo.flights import Departure, Departures, data_path
from gapless_pipelines.demo.flights_api import FlightsApi
from gapless_pipelines.demo.server import FlightsServer


@pytest.fixture
def url() -> Iterator[str]:
    events = [Departure(60 * n, f"JFK-{n}", msgspec.json.encode({"id": f"JFK-{n}"})) for n in range(5)]
    with FlightsServer(FlightsApi(Departures({"JFK": events}), page_size=3)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()


def test_a_connection_is_kept_over_several_pages(url: str) -> None:
    with requests.Session() as session:
        first = session.get(f"{url}/airports/JFK/departures", timeout=5).json()
        second = session.get(f"{url}/airports/JFK/departures", params={"cursor": first["next"]}, timeout=5)
    assert [event["id"] for event in second.json()["departures"]] == ["JFK-3", "JFK-4"]
    assert second.headers["Content-Type"] == "application/json"


def test_what_is_not_there_is_told_so(url: str) -> None:
    assert requests.get(f"{url}/airports/LHR/departures", timeout=5).status_code == 404
    assert requests.get(f"{url}/", timeout=5).status_code == 404


def test_the_process_listens_on_loopback_alone_and_ends_with_its_standard_input() -> None:
    try:
        data_path()
    except ConfigurationError as missing:
        pytest.skip(missing.what)
    with subprocess.Popen(
        [sys.executable, "-m", "gapless_pipelines.demo.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:")
            answer = requests.get(f"{url}/airports", timeout=5).json()
            assert answer == {"routing_generation": "2013", "airports": ["EWR", "JFK", "LGA"]}
            server.stdin.close()
            assert server.wait(timeout=10) == 0
        finally:
            server.kill()
