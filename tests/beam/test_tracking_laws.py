"""The tracker under every order of pages and outcomes, repetition, lost bundles and workers, rivals with other pages, fences: it
never claims what was not settled, loses nothing, and has nothing left when all of it is promoted."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from ragged_source import RaggedSource
from scripted_universe import universe
from tracked_chains import TrackedChains

from gapless.audit.auditing import audit
from gapless.emitted_page import EmittedPage, Outcome
from gapless.outcomes import dead_lettered, delivered, left_out, part
from gapless.testing.keyed_driver import BundleLost

THERE = universe(partitions=2, pages=4, events=5)
POSITIONS = {event["id"]: event["position"] for events in THERE.values() for event in events}
DEAD = {event for event in POSITIONS if event.endswith(("3", "11"))}


class World:
    """Readers, a pipeline that applies pages and says so, a net that reorders, repeats and delays, and workers that die."""

    def __init__(self, url: str, seed: int) -> None:
        self.random = Random(seed)
        self.chains = TrackedChains(url, RaggedSource(THERE, seed))
        self.applied: set[str] = set()
        self.net: list[EmittedPage | Outcome] = []
        self.unapplied: list[EmittedPage] = []
        self.readers = 0

    def read(self, partition: str | None = None) -> None:
        partition = partition or self.random.choice(sorted(THERE))
        self.readers += 1
        pages = self.chains.read(partition, f"reader {self.readers}", self.random.randint(1, 12))
        self.net += pages
        self.unapplied += pages

    def apply(self, page: EmittedPage) -> None:
        """As a user's step does: durable first, then said, in one of the ways there are."""
        self.applied.update(page.ids)
        dead = {event: f"no {event}" for event in page.ids if event in DEAD}
        well = [event for event in page.ids if event not in dead]
        self.net += self.random.choice(
            [
                lambda: [delivered(page, but=dead)],
                lambda: [delivered(page, well), dead_lettered(page, dead)],
                lambda: [
                    dead_lettered(page, dead),
                    delivered(page, well[::2]),
                    left_out(page, well[1::2]),
                ],
                lambda: [
                    part(delivered(page, well), 0, 2),
                    part(delivered(page, but=dead), 1, 2),
                    part(dead_lettered(page, dead), 0, 2),
                ],
                lambda: [delivered(page, [event], but=None) for event in well] + [dead_lettered(page, dead)],
            ]
        )()

    def step(self) -> None:
        what = self.random.random()
        if what < 0.15:
            self.read()
        elif what < 0.5 and self.unapplied:
            self.apply(self.unapplied.pop(self.random.randrange(len(self.unapplied))))
        elif what < 0.9:
            self.deliver()
        elif what < 0.94:
            self.chains.driver.lose_worker()
        elif what < 0.96:
            self.chains.driver.fire(end_of_window=True)
        elif what < 0.97:
            self.chains.new_run()
        self.check()

    def deliver(self) -> None:
        self.random.shuffle(self.net)
        size = min(len(self.net), self.random.randint(1, 8))
        some, self.net = self.net[:size], self.net[size:]
        if self.random.random() < 0.2:
            some += some[: self.random.randint(1, 3)]
        try:
            crash = self.random.randint(0, len(some)) if self.random.random() < 0.3 else None
            self.chains.bundle(*some, crash_after=crash)
        except BundleLost:
            self.net += some
        if self.random.random() < 0.1:
            self.net += some[:2]

    def check(self) -> None:
        for partition in THERE:
            row = self.chains.row(partition)
            before = len(THERE[partition]) if row.state.value == "ended" else int(row.page_token or 0)
            for event in THERE[partition][:before]:
                assert event["id"] in self.applied
            if row.bound is not None:
                for event in THERE[partition]:
                    assert not row.bound.covers(event["position"]) or event["id"] in self.applied

    def finish(self) -> None:
        """Whatever is missing is read again, applied, and comes."""
        self.chains.new_run()
        for _ in range(2):
            for partition in THERE:
                self.read(partition)
                pages = self.chains.read(partition, f"last {self.readers}")
                self.net += pages
                self.unapplied += pages
            while self.unapplied:
                self.apply(self.unapplied.pop())
            self.chains.shuffled(self.net, self.random)
            self.net.clear()
            self.check()


@pytest.fixture(params=range(12))
def world(sqlite_url: str, request: pytest.FixtureRequest) -> Iterator[World]:
    world = World(sqlite_url, request.param)
    yield world
    world.chains.close()


def test_it_claims_only_what_was_settled_and_loses_nothing(world: Any) -> None:
    for _ in range(120):
        world.step()
    world.finish()
    chains = world.chains
    for partition in THERE:
        row = chains.row(partition)
        assert (row.state.value, row.bound) == ("ended", chains.source.end)
        assert row.events >= len(THERE[partition])
    letters = {letter.event_id for letter in chains.store.dead_letters(chains.source.scope)}
    assert letters == DEAD
    assert audit(chains.store, chains.source.scope).clean
    chains.driver.fire(end_of_window=True)
    assert chains.driver.state_entries() == 0
