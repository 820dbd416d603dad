"""The ledger under every order of pages and receipts, under twins, rewinds and lost receipts: it tells the truth and goes on."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.progress import Bound, Certificate, Checkpoint, Ledger, PageAttempt, Terminal

EVENTS = 14


def chain_of(sizes: list[int]) -> list[PageAttempt]:
    """Pages of these many events in a row; each certifies through its last event."""
    pages, begun = [], 0
    for number, size in enumerate(sizes):
        events = tuple((f"e{position}", position) for position in range(begun, begun + size))
        begun += size
        certificate = Certificate(Bound.before(begun), "page")
        pages.append(PageAttempt(f"g{number}", f"t{number}", f"t{number + 1}", events, certificate))
    return pages


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6), st.randoms(use_true_random=False), st.integers(0, 8)
)
def test_what_is_promotable_does_not_depend_on_the_order_of_pages_and_receipts(
    sizes: list[int], random: Random, lost: int
) -> None:
    pages = chain_of(sizes)
    receipts = [event for page in pages for event, position in page.events if position != lost]
    ends = []
    for _ in range(2):
        ledger = Ledger(Checkpoint(1, 0, "t0", None))
        happenings: list[PageAttempt | str] = [*pages, *receipts, *receipts]
        random.shuffle(happenings)
        for happening in happenings:
            if isinstance(happening, PageAttempt):
                ledger.offer(happening)
            else:
                ledger.settle([happening], Terminal.DELIVERED)
            run = ledger.promotable() if random.random() < 0.5 else None
            if run is not None:
                ledger.promoted(run)
        run = ledger.promotable()
        if run is not None:
            ledger.promoted(run)
        ends.append(ledger.checkpoint)
    expected = next(
        (number for number, page in enumerate(pages) if any(position == lost for _, position in page.events)),
        len(pages),
    )
    assert ends[0] == ends[1]
    assert ends[0].sequence == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_a_run_promoted_at_once_is_its_pages_promoted_one_by_one(sizes: list[int]) -> None:
    pages = chain_of(sizes)
    at_once, one_by_one = Ledger(Checkpoint(1, 0, "t0", None)), Ledger(Checkpoint(1, 0, "t0", None))
    for ledger in (at_once, one_by_one):
        for page in pages:
            ledger.offer(page)
        ledger.settle([event for page in pages for event, _ in page.events], Terminal.DELIVERED)
    run = at_once.promotable()
    assert run is not None
    at_once.promoted(run)
    for page in pages:
        assert one_by_one.promote(page.name, token=page.start_token).code.promoted
    assert at_once.checkpoint == one_by_one.checkpoint == run.after


class World:
    """A source of EVENTS events that cuts its pages anew at each fetch, a reader, a twin, and a net that loses and repeats."""

    def __init__(self, seed: int, limit: int) -> None:
        self.random = Random(seed)
        self.ledger = Ledger(Checkpoint(1, 0, "0", None), limit=limit, remember=4)
        self.delivered: set[int] = set()
        self.readers = [0, 0]
        self.net: list[PageAttempt | tuple[str, str]] = []
        self.fetches = 0

    def fetch(self, reader: int) -> None:
        """One page; each of its events is delivered or fails, and only what was delivered is reported."""
        begun = self.readers[reader]
        if begun >= EVENTS:
            return
        stop = min(EVENTS, begun + self.random.randint(0, 4))
        self.fetches += 1
        certified = Bound.before(self.random.randint(0, stop))
        events = tuple((f"e{position}", position) for position in range(begun, stop))
        page = PageAttempt(
            f"fetch {self.fetches}", str(begun), str(stop), events, Certificate(certified, "page")
        )
        self.readers[reader] = stop
        self.net += [page, page] if self.random.random() < 0.2 else [page]
        for event, position in events:
            if self.random.random() < 0.85:
                self.delivered.add(position)
                self.net += [(event, page.name)] * self.random.choice([1, 1, 2])

    def receive(self) -> None:
        if not self.net:
            return
        message = self.net.pop(self.random.randrange(len(self.net)))
        if isinstance(message, PageAttempt):
            self.ledger.offer(message)
        elif self.random.random() < 0.95:
            self.ledger.settle([message[0]], Terminal.DELIVERED, self.random.choice([None, message[1]]))
        run = self.ledger.promotable()
        if run is not None:
            self.ledger.promoted(run)
            self.check()

    def rewind(self, reader: int) -> None:
        self.readers[reader] = int(self.ledger.checkpoint.page_token or 0)

    def check(self) -> None:
        """Everything before the committed token, and everything inside the bound, was delivered."""
        checkpoint = self.ledger.checkpoint
        assert set(range(int(checkpoint.page_token or 0))) <= self.delivered
        if checkpoint.bound is not None:
            assert {
                position for position in range(EVENTS) if checkpoint.bound.covers(position)
            } <= self.delivered

    def settle_down(self) -> None:
        """From now on everything works: read again from the committed token until the end."""
        for _ in range(4 * EVENTS):
            self.ledger.forget()
            self.rewind(0)
            begun = self.readers[0]
            if begun == EVENTS:
                return
            page = PageAttempt(
                f"last {begun}",
                str(begun),
                str(begun + 1),
                ((f"e{begun}", begun),),
                Certificate(Bound.through(begun), "page"),
            )
            self.delivered.add(begun)
            self.net += [page, (f"e{begun}", page.name)]
            self.random.shuffle(self.net)
            while self.net:
                self.receive()
        raise AssertionError(f"stands still at {self.ledger.checkpoint}")


@pytest.mark.parametrize("limit", [1, 3, 64])
def test_twins_rewinds_and_lost_receipts_never_make_it_lie_or_stand_still(limit: int) -> None:
    for seed in range(150):
        world = World(seed, limit)
        for _ in range(150):
            action = world.random.random()
            if action < 0.35:
                world.fetch(0)
            elif action < 0.5:
                world.fetch(1)
            elif action < 0.9:
                world.receive()
            else:
                world.rewind(world.random.randrange(2))
        world.settle_down()
        world.check()
        assert world.ledger.checkpoint.page_token == str(EVENTS)
