"""The atomic steps of a world: what each of source, workers, publisher, observers and cutover may do next; and the invariants."""

from collections.abc import Iterable
from typing import Any

from progress_model.rules import Rules, outcomes
from progress_model.source import World
from progress_model.state import TRANSIT, Broken, Look, Page, PendingPublish, Row, Scope, Transit, Worker

SOURCE, SCOPE, ROWS, TRANSITS, WORKERS, PUBLISH, LOOKS, DECIDED = range(8)
"""The parts of a state."""
Changed = dict[int, Any]
Outcome = tuple[str, Changed]


class Steps:
    """`unlocked`: the cutover reads the rows first and writes later, without a lock on them. `reached` collects what happened."""

    def __init__(self, rules: Rules, *, unlocked: bool = False) -> None:
        self.rules = rules
        self.world: World = rules.world
        self.unlocked = unlocked
        self.reached: set[str] = set()

    def source_steps(self, source: Any) -> Iterable[Outcome]:
        for label, after in self.world.moves(source):
            yield label, {SOURCE: after}

    def worker_steps(
        self, source: Any, rows: tuple[Row, ...], transit: Transit | None, workers: tuple[Worker | None, ...]
    ) -> Iterable[Outcome]:
        for place, worker in enumerate(workers):
            if place and worker == workers[place - 1]:
                continue
            for label, after, changed in self._worker(source, rows, transit, worker):
                team = [*workers[:place], after, *workers[place + 1 :]]
                yield label, {WORKERS: tuple(sorted(team, key=_sorting)), **changed}

    def _worker(
        self, source: Any, rows: tuple[Row, ...], transit: Transit | None, worker: Worker | None
    ) -> Iterable[tuple[str, Worker | None, Changed]]:
        if worker is None:
            yield from self._take(rows)
            if transit is not None and not transit.ended:
                yield from self._handoff(source, transit)
            return
        yield f"run {worker.fence} crashes", None, {}
        if worker.chain == TRANSIT:
            yield from self._settle_transit(transit, worker)
            return
        row = rows[worker.chain]
        name = row.partition
        if worker.phase == "taken" or (
            worker.phase in ("settled", "confirmed") and len(worker.pages) < self.world.longest_run
        ):
            yield from self._fetch(source, name, worker)
        if worker.phase == "fetched":
            yield f"run {worker.fence} settles {name}", worker._replace(phase="settled"), {}
        if worker.phase == "settled" and self.world.confirm:
            generation = self.world.generation(source)
            said = self.world.names[generation]
            fits = said == self.world.names[worker.generation]
            after = worker._replace(phase="confirmed", confirmed=generation + 1) if fits else None
            yield f"run {worker.fence} reads generation {said} for {name}", after, {}
        if self.rules.tries_to_promote(worker):
            yield from self._promote(rows, worker)

    def _take(self, rows: tuple[Row, ...]) -> Iterable[tuple[str, Worker | None, Changed]]:
        for chain, row in enumerate(rows):
            if row.closed or row.token >= (self.world.horizon[row.partition] - 1) // 2:
                continue
            for fence in self.world.fences:
                taken = self.rules.take(row, fence)
                if taken is None:
                    continue
                worker = Worker(chain, fence, row.generation, row.sequence, row.token, (), "taken", 0)
                after = rows if taken == row.fence else _with(rows, chain, row._replace(fence=taken))
                yield f"run {fence} takes {row.partition}", worker, {ROWS: after}

    def _fetch(self, source: Any, name: str, worker: Worker) -> Iterable[tuple[str, Worker | None, Changed]]:
        token = worker.pages[-1].next if worker.pages else worker.token
        generation = self.world.generation(source)
        carries = not self.world.confirm
        if carries and worker.pages and generation + 1 != worker.confirmed:
            # The page names another generation than those before it: the run is dropped.
            yield f"run {worker.fence} fetches {name} of another generation", None, {}
            return
        for page, after in self.world.fetch(source, name, token):
            pages = (*worker.pages, page)
            confirmed = generation + 1 if carries else self.rules.confirmed_before(worker)
            fetched = worker._replace(pages=pages, phase="fetched", confirmed=confirmed)
            yield f"run {worker.fence} fetches {name} from {token} to {page.next}", fetched, {SOURCE: after}

    def _promote(self, rows: tuple[Row, ...], worker: Worker) -> Iterable[tuple[str, Worker | None, Changed]]:
        row = rows[worker.chain]
        after = self.rules.promote(row, worker)
        label = f"run {worker.fence} promotes {row.partition} from {worker.token}"
        if after is None:
            if worker.phase != "fetched":
                yield f"{label}: lost", None, {}
            return
        if after.bound < row.bound:
            raise Broken(3, f"the bound of {row.partition} goes back")
        # A file under an older fencing token may have been swept by whoever has taken the chain since.
        durable = outcomes(worker) if worker.fence >= row.fence else 0
        if row.events & durable and self.world.proof in ("again", "none"):
            raise Broken(2, f"events of {row.partition} are promoted twice")
        after = after._replace(events=row.events | durable)
        self.reached.add("promoted")
        yield label, None, {ROWS: _with(rows, worker.chain, after)}

    def _handoff(self, source: Any, transit: Transit) -> Iterable[tuple[str, Worker | None, Changed]]:
        if self.world.generation(source) < transit.after:
            return
        for complete in self.world.handoffs:
            events = self.world.handoff(transit.before, transit.after, complete)
            page = Page(transit.before, transit.after, events, complete, 0)
            yield f"handoff through {complete} is read", _transit_worker(page, "fetched"), {}

    def _settle_transit(
        self, transit: Transit | None, worker: Worker
    ) -> Iterable[tuple[str, Worker | None, Changed]]:
        page = worker.pages[0]
        if worker.phase == "fetched":
            yield "the events in transit are settled", worker._replace(phase="settled"), {}
            return
        fits = transit is not None and (transit.before, transit.after) == (page.start, page.next)
        if not fits or transit is None or transit.ended:
            yield "events in transit: lost", None, {}
            return
        ended = transit._replace(complete=page.certificate, ended=True, events=page.events)
        yield "the events in transit are promoted", None, {TRANSITS: ended}

    def publish_steps(
        self, scope: Scope, rows: tuple[Row, ...], pending: PendingPublish | None, decided: Any
    ) -> Iterable[Outcome]:
        if pending is None:
            minimum = self.rules.minimum(scope, rows)
            if minimum > scope.frontier:
                yield f"publisher sees {minimum}", {PUBLISH: PendingPublish(scope.epoch, minimum)}
            return
        if decided is not None:
            return
        frontier = self.rules.capped(pending.minimum, scope.cap)
        after = {PUBLISH: None}
        if self.rules.may_publish(scope, pending.epoch, frontier):
            if frontier < scope.frontier:
                raise Broken(3, "the frontier goes back")
            if frontier > scope.cap:
                raise Broken(6, "the frontier passes the cap")
            self.reached.add("published")
            yield f"publishes {frontier}", {**after, SCOPE: scope._replace(frontier=frontier)}
        else:
            yield "publishes nothing", after

    def look_steps(self, source: Any, scope: Scope, looks: tuple[Any, ...]) -> Iterable[Outcome]:
        if self.world.switches and None in looks:
            look = Look(self.world.listing(source), scope.epoch)
            if look not in looks:
                team = [*looks]
                team[team.index(None)] = look
                yield "the list is read", {LOOKS: tuple(sorted(team, key=_sorting))}

    def observe_steps(
        self,
        scope: Scope,
        rows: tuple[Row, ...],
        transit: Transit | None,
        looks: tuple[Any, ...],
        decided: Any,
    ) -> Iterable[Outcome]:
        if decided is not None:
            return
        for place, look in enumerate(looks):
            if look is None:
                continue
            left = [*looks[:place], None, *looks[place + 1 :]]
            after: Changed = {LOOKS: tuple(sorted(left, key=_sorting))}
            if self.rules.is_stale(scope, look):
                yield "a list that was read before a cutover is read again", after
                continue
            observed = self.rules.observe(scope, rows, transit, look.listing)
            if observed is None:
                yield "a generation that came back is refused", after
                continue
            changed, new_rows, new_transit = observed
            after |= {SCOPE: changed, ROWS: new_rows, TRANSITS: new_transit}
            yield f"the list is noted: {look.listing}", after

    def cutover_steps(
        self, scope: Scope, rows: tuple[Row, ...], transit: Transit | None, decided: Any
    ) -> Iterable[Outcome]:
        if decided is not None:
            step = self.rules.step(scope, decided, transit)
            yield from self._carried_out(scope, rows, transit, step)
            return
        step = self.rules.step(scope, rows, transit)
        if not step.changes:
            return
        if self.unlocked:
            yield "cutover has read the rows", {DECIDED: rows}
        else:
            yield from self._carried_out(scope, rows, transit, step)

    def _carried_out(
        self, scope: Scope, rows: tuple[Row, ...], transit: Transit | None, step: Any
    ) -> Iterable[Outcome]:
        opened, after, left = self.rules.carry_out(scope, rows, transit, step)
        self._note(step)
        if opened.epoch != scope.epoch + 1:
            raise Broken(6, "a cutover opens another epoch than the next")
        changed: Changed = {SCOPE: opened, ROWS: after, DECIDED: None}
        changed[TRANSITS] = left
        yield f"cutover to epoch {opened.epoch}: {_told(step, rows)}", changed

    def _note(self, step: Any) -> None:
        for what in ("entering", "leaving", "replaced", "dropped", "rerouted"):
            if getattr(step, what):
                self.reached.add(what)
        if step.missing and step.changes:
            self.reached.add("partial")

    def judge(self, scope: Scope, rows: tuple[Row, ...]) -> None:
        """Raises Broken."""
        durable, twice = scope.carried, 0
        for row in rows:
            if row.member:
                twice |= durable & row.events
                durable |= row.events
        owed = self.world.everything if scope.certified else scope.owed
        missing = owed & self.world.covered[scope.frontier] & ~durable
        if missing:
            raise Broken(1, f"published {scope.frontier}, without an outcome of events {missing:b}")
        if self.world.proof in ("again", "none") and twice:
            raise Broken(2, f"the data set holds events {twice:b} twice")
        for row in rows:
            if row.closed or not row.member:
                continue
            if row.generation != scope.generation:
                raise Broken(5, f"{row.partition} is a member under another generation")
            if row.bound < scope.frontier:
                raise Broken(4, f"published more than {row.partition} has certified")
        if scope.frontier > scope.cap:
            raise Broken(6, "the cap is below the frontier")
        unproven = scope.observed != scope.generation or any(not r.closed and not r.member for r in rows)
        if unproven and not scope.certified and scope.cap != scope.frontier:
            raise Broken(6, "the frontier may move while somebody unproven is in sight")
        if unproven:
            self.reached.add("unproven")
        self.reached.add(f"epoch {scope.epoch}")
        self.reached.add(f"frontier {scope.frontier}")


def _transit_worker(page: Page, phase: str) -> Worker:
    return Worker(TRANSIT, 1, 0, 0, 0, (page,), phase, 0)


def _with(rows: tuple[Row, ...], chain: int, row: Row) -> tuple[Row, ...]:
    return (*rows[:chain], row, *rows[chain + 1 :])


def _sorting(value: Any) -> Any:
    return (value is not None, repr(value))


def _told(step: Any, rows: tuple[Row, ...]) -> str:
    parts = []
    for what in ("entering", "leaving", "replaced", "dropped", "rerouted"):
        if chains := getattr(step, what):
            parts.append(f"{what} {'+'.join(f'{rows[c].partition}{rows[c].generation}' for c in chains)}")
    return ", ".join(parts)
