"""The oracle: what a published frontier claims, held against every event that the hostile API has ever promised.

It reads the store by SQL of its own and the files by the manifest alone, and knows nothing of how either came to be:

    oracle = TruthOracle(store_url, scope, universe)
    oracle.look()                   raises Untrue at the first thing that does not hold at this instant
    oracle.finish()                 the same, every file read anew, and every event's data compared field by field; then
                                    the product's own audit has to find nothing either

At any instant: each event at or below the frontier is in a promoted file, or a dead letter; each chain's events come in the
source's order without a hole, once, and again only where the source itself repeats the last one of the page before, or where a
restart is written down that covers it; the frontier and the bounds never go back; what is counted is what the listed files hold.
"""

import hashlib
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from durable_claims import Chain, Instant, Listed, instant, read_only_engine

from gapless.audit import audit
from gapless.effects.frozen_schema import FrozenSchema
from gapless.effects.reading import source_row
from gapless.progress import ChainState
from gapless.store import open_store

Event = Mapping[str, Any]


class Untrue(AssertionError):
    """Something is claimed that does not hold."""


@dataclass
class TruthOracle:
    """`universe` is partition -> events (`id`, `position`, data) in the source's order. Thread-safe.

    `repeats`: the source gives the last event of a page again on the next one."""

    url: str
    scope: str
    universe: Mapping[str, Sequence[Event]]
    repeats: bool = False
    looks: int = 0
    _seen: Instant | None = None
    _files: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = read_only_engine(self.url)
        self._one_at_a_time = threading.RLock()
        self._index = {
            name: {e["id"]: n for n, e in enumerate(events)} for name, events in self.universe.items()
        }
        self._positions = {name: [e["position"] for e in events] for name, events in self.universe.items()}

    def look(self) -> Instant | None:
        """Judge this instant; None where there is no scope yet, or no server to ask."""
        with self._one_at_a_time:
            return self._look()

    def _look(self) -> Instant | None:
        now = instant(self.engine, self.scope)
        if now is None:
            return None
        self.looks += 1
        self._judge_movement(now)
        delivered = {number: self._delivered(chain, now) for number, chain in now.chains.items()}
        for number, chain in now.chains.items():
            self._judge_order(chain, delivered[number], now)
        self._judge_frontier(now, delivered)
        self._seen = now
        return now

    def finish(self) -> Instant:
        """Judge the end: every file is read again, and every event compared with what the source has of it."""
        with self._one_at_a_time:
            self._files.clear()
            now = self._look()
            if now is None:
                raise Untrue("there is nothing in the store")
            for listed in now.manifest:
                if listed.path is not None and now.schema is not None:
                    self._judge_content(now.chains[listed.chain].partition, listed.path, now.schema)
            self._audit()
            return now

    def _audit(self) -> None:
        """The product's own audit finds nothing where the oracle has found nothing."""
        with open_store(self.url, readonly=True) as store:
            report = audit(store, self.scope)
        _require(report.clean, f"the audit contradicts: {report.contradictions[:3]}")

    def _judge_movement(self, now: Instant) -> None:
        _require(sorted(now.history) == list(now.history), f"the frontier's history went back: {now.history}")
        if now.history or now.frontier:
            _require(
                bool(now.history) and now.history[-1] == now.frontier,
                "the frontier is not its history's last",
            )
        paths = [listed.path for listed in now.manifest if listed.path is not None]
        _require(len(paths) == len(set(paths)), "a file is listed twice")
        before = self._seen
        if before is None:
            return
        _require(
            before.frontier is None or (now.frontier is not None and now.frontier >= before.frontier),
            f"the frontier went back from {before.frontier} to {now.frontier}",
        )
        there = {(one.chain, one.sequence): one for one in now.manifest}
        for one in before.manifest:
            _require(there.get((one.chain, one.sequence)) == one, f"a promotion was undone or changed: {one}")
        for number, chain in before.chains.items():
            later = now.chains[number]
            _require(
                chain.bound is None or (later.bound is not None and later.bound >= chain.bound),
                f"{chain.partition}: its bound went back from {chain.bound} to {later.bound}",
            )
            _require(later.sequence >= chain.sequence, f"{chain.partition}: its sequence went back")
            _require(
                later.fencing_token >= chain.fencing_token, f"{chain.partition}: its fencing token went back"
            )

    def _delivered(self, chain: Chain, now: Instant) -> list[tuple[int, str]]:
        """(sequence of the page, event id) of every row of the chain's listed files, which are whole and as listed."""
        rows: list[tuple[int, str]] = []
        following, events, token = 0, 0, None
        for listed in (one for one in now.manifest if one.chain == chain.number):
            _require(
                listed.sequence == following,
                f"{chain.partition}: pages {following} to {listed.sequence} were never promoted",
            )
            _require(
                listed.token_in == token,
                f"{chain.partition}: the run at {listed.sequence} starts at another token",
            )
            following, token = listed.sequence + listed.pages, listed.token_out
            events += listed.events
            if following in [at for at, _ in now.restarts.get(chain.number, ())]:
                token = _ANY
            if listed.path is None:
                _require(listed.rows == 0, f"{listed} counts rows of no file")
                continue
            in_file = self._in_file(listed, chain)
            _require(
                len(in_file) == listed.rows,
                f"{listed.path} holds {len(in_file)} rows, {listed.rows} are listed",
            )
            outside = [s for s, _ in in_file if not listed.sequence <= s < following]
            _require(
                not outside, f"{listed.path} holds rows of pages {outside[:3]}, which it is not listed for"
            )
            rows += in_file
        _require(
            following == chain.sequence,
            f"{chain.partition}: {following} pages listed, {chain.sequence} promoted",
        )
        _require(events == chain.events, f"{chain.partition}: {chain.events} events counted, {events} listed")
        return rows

    def _in_file(self, listed: Listed, chain: Chain) -> list[tuple[int, str]]:
        assert listed.path is not None
        if listed.path in self._files:
            return self._files[listed.path]
        file = Path(listed.path)
        _require(file.is_file(), f"{file} is listed and not there")
        _require(
            hashlib.sha256(file.read_bytes()).hexdigest() == listed.digest, f"{file} is not what is listed"
        )
        table = pq.read_table(
            file, columns=["_partition", "_sequence", "_position", "_event_id"], partitioning=None
        )
        columns = table.to_pydict()
        _require(set(columns["_partition"]) <= {chain.partition}, f"{file} holds another partition's events")
        for event_id, position in zip(columns["_event_id"], columns["_position"], strict=True):
            known = self._index[chain.partition].get(event_id)
            _require(known is not None, f"{file} holds {event_id!r}, which the source never had")
            assert known is not None
            _require(
                str(self._positions[chain.partition][known]) == position,
                f"{file} has {event_id!r} at {position}",
            )
        self._files[listed.path] = list(zip(columns["_sequence"], columns["_event_id"], strict=True))
        return self._files[listed.path]

    def _judge_order(self, chain: Chain, rows: Sequence[tuple[int, str]], now: Instant) -> None:
        """In the source's order, without a hole, and again only where that is explained."""
        name, events = chain.partition, self.universe[chain.partition]
        dead = now.dead.get(chain.number, frozenset())
        following, page = 0, -1
        for sequence, event_id in rows:
            at = self._index[name][event_id]
            again_from = following
            if sequence != page:
                again_from = self._repeated_from(following, page, sequence, chain, now)
                page = sequence
            missing = [events[n]["id"] for n in range(following, at) if events[n]["id"] not in dead]
            _require(not missing, f"{name}: {missing[:3]} are missing before {event_id!r}")
            _require(at >= again_from, f"{name}: {event_id!r} stands there again, and nothing explains it")
            following = at + 1
        _require(
            len(dead) == chain.dead_letters, f"{name}: {len(dead)} dead letters, {chain.dead_letters} counted"
        )
        if chain.state == ChainState.ENDED.value:
            missing = [event["id"] for event in events[following:] if event["id"] not in dead]
            _require(not missing, f"{name} has ended without {missing[:3]}")

    def _repeated_from(self, following: int, page: int, sequence: int, chain: Chain, now: Instant) -> int:
        """The lowest event that the page `sequence`, which comes after `page`, may begin with."""
        restarts = [since for at, since in now.restarts.get(chain.number, ()) if page < at <= sequence]
        lowest = min(
            [following, *(bisect_left(self._positions[chain.partition], since) for since in restarts)]
        )
        return max(0, lowest - self.repeats)

    def _judge_frontier(self, now: Instant, delivered: Mapping[int, Sequence[tuple[int, str]]]) -> None:
        if now.frontier is None:
            return
        chains = {chain.partition: number for number, chain in now.chains.items()}
        for partition, events in self.universe.items():
            _require(partition in chains, f"{partition} is no member, and {now.frontier} is claimed")
            number = chains[partition]
            bound = now.chains[number].bound
            _require(
                bound is not None and bound >= now.frontier,
                f"{partition} stands at {bound}, {now.frontier} is claimed",
            )
            have = {event_id for _, event_id in delivered[number]} | now.dead.get(number, frozenset())
            until = bisect_left(self._positions[partition], now.frontier.position + now.frontier.inclusive)
            missing = [event["id"] for event in events[:until] if event["id"] not in have]
            _require(
                not missing,
                f"{partition}: {missing[:3]} ({len(missing)} in all) are missing, {now.frontier} is claimed",
            )

    def _judge_content(self, partition: str, path: str, schema: str) -> None:
        frozen = FrozenSchema.from_text(schema)
        for record in pq.read_table(path, partitioning=None).to_pylist():
            expected = self.universe[partition][self._index[partition][record["_event_id"]]]
            plain = {key: value for key, value in expected.items() if value is not None}
            found = source_row(record, frozen)
            _require(
                _same(found, plain), f"{path}: {record['_event_id']!r} is {found}, the source has {plain}"
            )


class _Any:
    """Equal to every token: after a restart a run starts at a token that no page gave."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__


_ANY: Any = _Any()


class Watch(threading.Thread):
    """Looks again and again while backfills run. Leaving it raises what a look has raised."""

    def __init__(self, oracle: TruthOracle, every: float = 0.02) -> None:
        super().__init__(daemon=True)
        self.oracle = oracle
        self._every = every
        self._over = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._over.wait(self._every):
                self.oracle.look()
        except BaseException as error:  # noqa: BLE001 - raised again where the watch is left
            self._error = error

    def __enter__(self) -> "Watch":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join(60)
        if self._error is not None:
            raise self._error


def _same(found: Any, expected: Any) -> bool:
    """Equal, a number being a number whether it is written 1 or 1.0, and true being none."""
    if isinstance(expected, Mapping):
        return (
            isinstance(found, Mapping)
            and found.keys() == expected.keys()
            and all(_same(found[key], value) for key, value in expected.items())
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(_same, found, expected))
    return _kind(found) is _kind(expected) and bool(found == expected)


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Untrue(otherwise)
