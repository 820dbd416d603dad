"""Reads the hostile API with the real source and page loop: what it promised is what is read, whatever it
does."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import hostile_api
import msgspec
import pytest
from hostile_api import HostileApi
from hostile_universe import END, HOSTILE, Knobs, job_source, partition_names, universe

from gapless.errors import SourceUnavailable, TokenExpired
from gapless.paging.chain import PageChain, PageViolation
from gapless.paging.http import HttpSession, HttpSource
from gapless.paging.page import Partition
from gapless.progress import Assertion, Bound, IntegerDomain
from gapless.testing import ManualClock

TRUE_TOGETHER = {"rate_hang": 0.0, **HOSTILE}


class Reading:
    """A partition read to its end, restarted where its token dies; checks each certificate against the
    universe."""

    def __init__(
        self,
        source: HttpSource,
        session: HttpSession,
        partition: Partition,
        promised: list[dict[str, Any]],
        is_truthful: bool,
    ) -> None:
        self.rows: dict[str, Any] = {}
        self.violations: list[PageViolation] = []
        self.restarts = 0
        self.bound: Bound | None = None
        self._promised = promised
        self._is_truthful = is_truthful
        token: str | None = None
        read_to: Bound | None = None
        done = False
        while not done:
            chain = PageChain(partition, IntegerDomain(), token, self.bound, read_to=read_to)
            try:
                while not done:
                    checked = chain.accept(session.fetch(partition, chain.next_token))
                    self._take(checked.page.ids, checked.page.rows, checked.page.certificate)
                    self.violations += checked.violations
                    read_to = (
                        Bound.through(max(row["position"] for row in self.rows.values()))
                        if self.rows
                        else None
                    )
                    done = checked.done
            except TokenExpired:
                self.restarts += 1
                token = None if self.bound is None else source.restart_token(self.bound)
                read_to = None if self.bound is None else read_to

    def _take(self, ids: Any, rows: Any, certificate: Any) -> None:
        self.rows.update(zip(ids, rows, strict=True))
        if certificate is None:
            return
        assert not isinstance(certificate, Assertion)
        if self.bound is None or certificate.bound > self.bound:
            self.bound = certificate.bound
        if self._is_truthful:
            for event in self._promised:
                assert not certificate.bound.covers(event["position"]) or event["id"] in self.rows


def read_all(api: HostileApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reading]:
    knobs = api.knobs
    monkeypatch.setenv("HOSTILE_TOKEN", knobs.token or "unused")
    source = HttpSource(scope="hostile", domain={"type": "integer"}, **job_source(api.url, knobs))  # type: ignore[arg-type]
    session = source.open(ManualClock())
    promised = universe(knobs)
    for one in session.assignment().partitions:
        yield Reading(
            source, session, one.partition, promised[one.partition.id], knobs.break_promise == "none"
        )
    session.close()


@pytest.mark.parametrize("seed", range(6))
def test_everything_promised_is_read_exactly_whatever_the_api_does(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    knobs = Knobs(seed=seed, partitions=3, events=150, page=20, token="t-1", **TRUE_TOGETHER)
    with HostileApi(knobs) as api:
        readings = dict(zip(partition_names(knobs), read_all(api, monkeypatch), strict=True))
        stats = api.data.stats()
    for name, events in universe(knobs).items():
        assert readings[name].rows == {event["id"]: event for event in events}
        assert readings[name].violations == []
        assert readings[name].bound == Bound.through(END)
    assert sum(reading.restarts for reading in readings.values()) == stats.get("fault_expired", 0)


def test_each_fault_does_occur(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = Knobs(seed=3, partitions=2, events=600, page=6, **TRUE_TOGETHER)
    with HostileApi(knobs) as api:
        list(read_all(api, monkeypatch))
        stats = api.data.stats()
    for fault in ("429", "500", "503", "truncated", "html", "length", "drop", "expired"):
        assert stats[f"fault_{fault}"], fault


def test_answers_that_do_not_come_are_waited_for_no_longer_than_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with HostileApi(Knobs(seed=1, partitions=1, events=60, page=4, rate_hang=0.15, hang=20.0)) as api:
        (reading,) = read_all(api, monkeypatch)
        assert api.data.stats()["fault_hang"]
    assert len(reading.rows) == 60


@pytest.mark.parametrize(
    "promise", ["event_behind_bound", "certificate_went_back", "certificate_behind_events"]
)
@pytest.mark.parametrize("seed", range(4))
def test_the_promise_that_is_broken_is_the_one_that_is_found(
    promise: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    knobs = Knobs(
        seed=seed,
        partitions=2,
        events=80,
        page=9,
        ties=0.0,
        rate_empty=0.2,
        rate_uncertified=0.3,
        break_promise=promise,
    )
    with HostileApi(knobs) as api:
        readings = list(read_all(api, monkeypatch))
    for reading, events in zip(readings, universe(knobs).values(), strict=True):
        assert {violation.kind for violation in reading.violations} == {promise}
        assert reading.rows == {event["id"]: event for event in events}


def test_a_stalled_partition_answers_again_when_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs = Knobs(seed=1, partitions=2, events=50, page=10, stall=1, stall_after=20)
    with HostileApi(knobs) as api:
        readings = read_all(api, monkeypatch)
        assert len(next(readings).rows) == 50
        with pytest.raises(SourceUnavailable, match="HTTP 503"):
            next(readings)
        urlopen(f"{api.url}/release").close()
        assert [len(reading.rows) for reading in read_all(api, monkeypatch)] == [50, 50]


def test_in_a_process_of_its_own_it_tells_its_port_and_has_the_same_universe() -> None:
    command = [
        sys.executable,
        str(Path(hostile_api.__file__)),
        "--seed",
        "9",
        "--partitions",
        "2",
        "--events",
        "30",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with urlopen(f"http://127.0.0.1:{port}/partitions/p1/events") as response:
                served = msgspec.json.decode(response.read())["events"]
        finally:
            process.kill()
    assert served
    assert served == universe(Knobs(seed=9, partitions=2, events=30))["p1"][: len(served)]


def test_the_universe_depends_on_the_seed_and_nothing_else() -> None:
    assert universe(Knobs(seed=5)) == universe(Knobs(seed=5, page=3, rate_500=0.5))
    assert universe(Knobs(seed=5)) != universe(Knobs(seed=6))
    for events in universe(Knobs(seed=5)).values():
        positions = [event["position"] for event in events]
        assert positions == sorted(positions)
        assert len(set(positions)) < len(positions)
        assert len({event["id"] for event in events}) == len(events)
