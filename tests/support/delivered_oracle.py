"""The oracle over what a user's own transforms have delivered: at least once, nothing missing, whatever is claimed."""

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from durable_claims import Chain, Instant
from engine_deliveries import Deliveries, fate
from hostile_universe import index_of
from truth_oracle import TruthOracle, _require, _same

from gapless.paging.page_token import PageToken
from gapless.progress import ChainState


class DeliveredOracle(TruthOracle):
    """The events are not in files of the manifest but in the folder that `Deliver` writes to."""

    def __init__(self, *, deliveries: Path, **claims: object) -> None:
        super().__init__(**claims)  # type: ignore[arg-type]
        self._deliveries = Deliveries(deliveries)

    def _delivered(self, chain: Chain, now: Instant) -> list[tuple[int, str]]:
        promoted = super()._delivered(chain, now)
        _require(promoted == [], f"{chain.partition}: files are listed, and nobody writes any")
        # Whatever was claimed when the store was read had been written down before.
        self._look_at_deliveries()
        return []

    def _look_at_deliveries(self) -> None:
        for partition, event_id, data in self._deliveries.look():
            known = self._index[partition].get(event_id)
            _require(known is not None, f"{event_id!r} was delivered, and the source never had it")
            assert known is not None
            event = self.universe[partition][known]
            _require(_same(data, event), f"{event_id!r} was delivered as {data}, the source has {event}")

    def _judge_order(self, chain: Chain, rows: Sequence[tuple[int, str]], now: Instant) -> None:
        """Everything before the committed token, and at or below the chain's bound, is settled."""
        events = self.universe[chain.partition]
        dead = now.dead.get(chain.number, frozenset())
        _require(len(dead) == chain.dead_letters, f"{chain.partition}: {len(dead)} dead letters")
        wrong = [event_id for event_id in dead if fate(event_id) != "dead"]
        _require(not wrong, f"{chain.partition}: {wrong[:3]} are dead letters, and nobody gave them up")
        through = self._promoted_events(chain, now)
        if chain.bound is not None:
            positions = self._positions[chain.partition]
            through = max(through, bisect_left(positions, chain.bound.position + chain.bound.inclusive))
        if chain.state == ChainState.ENDED.value:
            through = len(events)
        missing = self._unsettled(chain.partition, through, dead)
        _require(not missing, f"{chain.partition}: {missing[:3]} ({len(missing)} in all) are not delivered")

    def _promoted_events(self, chain: Chain, now: Instant) -> int:
        """How many events lie before the token that the chain goes on from."""
        last = [one.token_out for one in now.manifest if one.chain == chain.number][-1:]
        if not last or last[0] is None:
            return 0
        cursor = PageToken.decode(last[0]).cursor
        return index_of(cursor) if isinstance(cursor, str) else 0

    def _unsettled(self, partition: str, through: int, dead: frozenset[str]) -> list[str]:
        delivered = self._deliveries.ids.get(partition, set())
        settled = {"delivered": delivered, "dead": dead}
        ids = [str(event["id"]) for event in self.universe[partition][:through]]
        return [one for one in ids if fate(one) != "left out" and one not in settled[fate(one)]]

    def _judge_frontier(self, now: Instant, delivered: object) -> None:
        if now.frontier is None:
            return
        chains = {chain.partition: chain for chain in now.chains.values()}
        for partition in self.universe:
            _require(partition in chains, f"{partition} is no member, and {now.frontier} is claimed")
            # What lies at or below its bound is judged with the chain.
            bound = chains[partition].bound
            _require(
                bound is not None and bound >= now.frontier,
                f"{partition} stands at {bound}, {now.frontier} is claimed",
            )
