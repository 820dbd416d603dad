"""The tracker's state is bounded by what is open, whatever has gone through it."""

from collections.abc import Iterator
from typing import Any

import pytest
from scripted_universe import source_of, universe
from tracked_chains import TrackedChains, keyed

from gapless.emitted_page import EmittedPage
from gapless.outcomes import delivered
from gapless.progress import Bound, Certificate
from gapless.store.promotion import Promotions


@pytest.fixture
def chains(sqlite_url: str) -> Iterator[TrackedChains]:
    chains = TrackedChains(sqlite_url, source_of(universe(1, 1, 1), events=1), stream=True)
    yield chains
    chains.close()


def page_of(chains: TrackedChains, number: int, events: int = 1) -> EmittedPage:
    ids = [f"e{number}-{k}" for k in range(events)]
    return EmittedPage(
        task=chains.tasks["p0"],
        attempt=f"a{number}",
        number=number,
        start_token=f"t{number}" if number else None,
        next_token=f"t{number + 1}",
        ids=ids,
        positions=[number * events + k for k in range(events)],
        rows=[{}] * events,
        certificate=Certificate(Bound.before((number + 1) * events), "page"),
    )


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_state_is_flat_over_many_pages_and_empty_in_the_end(
    chains: TrackedChains, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Outcomes come eight pages late, every tenth of them twice; now and then a worker is lost."""
    at_once = 500
    monkeypatch.setattr("gapless.tracking.pace.ENOUGH_PAGES", at_once)
    sizes = []
    late: list[EmittedPage] = []
    for start in range(0, count, at_once):
        said: list[Any] = []
        for number in range(start, start + at_once):
            page = page_of(chains, number)
            said.append(page)
            late.append(page)
            if len(late) > 8:
                said += [delivered(late[0])] * (2 if number % 10 == 0 else 1)
                del late[0]
        chains.bundle(*said)
        sizes.append(chains.driver.state_bytes())
        if start % 25_000 == 0:
            chains.driver.lose_worker()
    assert chains.row("p0").sequence == count - len(late)
    assert 0 < max(sizes) < 2 * max(sizes[:3])
    chains.bundle(*map(delivered, late))
    chains.driver.clock.advance(3600)
    chains.driver.fire()
    assert chains.row("p0").sequence == count
    assert (chains.driver.state_bytes(), chains.driver.timers) == (0, 0)


def test_what_is_open_is_kept_whole_and_written_anew_by_its_weight(chains: TrackedChains) -> None:
    """A hundred pages open, all but one event of each settled, one outcome an event: the log stays near what is open."""
    pages = [page_of(chains, number, events=20) for number in range(1, 101)]
    chains.bundle(*pages)
    open_bytes = chains.driver.state_bytes()
    chains.bundle(*(delivered(page, [event]) for page in pages for event in page.ids[1:]))
    assert chains.driver.state_bytes() < 6 * open_bytes
    chains.driver.lose_worker()
    first = page_of(chains, 0, events=20)
    chains.bundle(first, delivered(first), *(delivered(page, page.ids[:1]) for page in pages))
    assert chains.row("p0").sequence == 101


def test_an_element_costs_the_same_however_many_pages_are_open(
    chains: TrackedChains, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is read when a worker is new, and not with each element."""
    chains.bundle(*(page_of(chains, number) for number in range(1, 2001)))
    reads = 0
    dofn = chains.driver.worker
    original = type(dofn)._at_hand

    def counting(self: Any, *given: Any) -> Any:
        nonlocal reads
        before = len(self._known)
        found = original(self, *given)
        reads += len(self._known) == before
        return found

    monkeypatch.setattr(type(dofn), "_at_hand", counting)
    for number in range(2001, 2101):
        chains.bundle(page_of(chains, number))
    assert reads == 0
    chains.driver.lose_worker()
    chains.bundle(page_of(chains, 2101))
    assert reads == 1


def test_pages_that_come_fast_are_promoted_together(
    chains: TrackedChains, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where promoting takes time, it is not done for every page."""
    promotions = 0
    original = Promotions.promote

    def slow(self: Any, promotion: Any) -> Any:
        nonlocal promotions
        promotions += 1
        chains.driver.clock.advance(0.01)
        return original(self, promotion)

    monkeypatch.setattr(Promotions, "promote", slow)
    pages = [page_of(chains, number) for number in range(250)]
    chains.bundle(*(said for page in pages for said in (page, delivered(page))))
    assert chains.row("p0").sequence == 250
    assert promotions <= 5
    assert len(keyed(*pages)) == 250
