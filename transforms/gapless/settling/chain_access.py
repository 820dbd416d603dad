"""What every reader of a chain has at hand, however its events are settled: the judgement over its pages, the proof of their
generation, and second chances."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gapless.clock import Clock
from gapless.errors import (
    GaplessError,
    HandoffUnproven,
    InvalidPage,
    RangeTrimmed,
    RoutingChanged,
    SchemaDrift,
    SourceUnavailable,
    TokenCycle,
    TokenExpired,
)
from gapless.paging.chain import PageChain
from gapless.paging.page import Partition
from gapless.paging.readahead import FeedPool
from gapless.paging.source import Range, Source
from gapless.plan import partition_of
from gapless.progress import Bound
from gapless.settling.foreign_errors import of_source
from gapless.settling.retrying import LONGEST_WAIT, Failures, RetryPolicy
from gapless.store.records import ChainRow
from gapless.updates import ReadTask

MAX_RESTARTS = 3
"""Restarts at the certified bound without a promotion in between, before the chain is left as a gap."""

TRYING_AGAIN_IS_NO_HELP = (
    SchemaDrift,
    InvalidPage,
    TokenExpired,
    RangeTrimmed,
    TokenCycle,
    RoutingChanged,
    HandoffUnproven,
)


def feed_key(row: ChainRow) -> tuple[str, int, str]:
    """By which the chain's feed is parked. What it has fetched under one routing generation is none of the next one's, though the
    token goes on: a list that is read after a cutover proves nothing of pages from before."""
    return (row.scope, row.chain, row.generation)


@dataclass(frozen=True, slots=True)
class ChainAccess:
    """One chain of `source` as a reader's call works on it."""

    task: ReadTask
    source: Source
    feeds: FeedPool
    failures: Failures
    retry: RetryPolicy
    clock: Clock

    @property
    def partition(self) -> Partition:
        return partition_of(self.task)

    @property
    def where(self) -> str:
        return f"partition {self.task.partition}"

    def page_chain(
        self, row: ChainRow, token: str | None, bound: Bound | None, read_to: Bound | None
    ) -> PageChain:
        """The judgement over the pages from `token` on, where everything before is known by `bound` and `read_to`."""
        partition = self.partition
        return PageChain(
            partition=partition,
            domain=self.task.domain,
            start_token=token,
            bound=bound,
            range=Range() if partition.transit else self.source.range,
            read_to=read_to,
            generation=row.generation or None,
            certifies=self.source.basis() == "certified",
        )

    def require_generation(self, row: ChainRow) -> None:
        """Ask the source under which routing generation it answers now. Raises RoutingChanged where it is not the chain's: pages
        that arrived before, and name none themselves, are to be dropped. Raises SourceError where it does not say."""
        session = self.feeds.session()
        try:
            with of_source(self.where):
                generation = session.generation()
        finally:
            self.feeds.give_back(session)
        if generation != row.generation:
            raise RoutingChanged(
                f"the source answers under routing generation {generation!r}; this chain is read under {row.generation!r}",
                where=self.where,
                remedy="the run of pages was dropped; gapless status shows the membership",
            )

    def retry_at(self, error: GaplessError) -> datetime | None:
        """Count the error; when it may be tried again within the run. None: no more: it is no help, or too late for this run."""
        if isinstance(error, TRYING_AGAIN_IS_NO_HELP):
            return None
        retry_after = error.retry_after if isinstance(error, SourceUnavailable) else 0.0
        if retry_after is None:
            return None
        tried = self.failures.failed(self.task.chain)
        if tried >= self.retry.attempts:
            return None
        wait = max(self.retry.delay(tried), retry_after)
        if wait > LONGEST_WAIT:
            return None
        return self.clock.now() + timedelta(seconds=wait)

    def restart_token(self, bound: Bound | None) -> str | None:
        """Where the chain restarts after its token has died; None where it cannot, or has too often without getting on."""
        if bound is None:
            return None
        with of_source(self.where):
            token = self.source.restart_token(bound)
        if token is None or self.failures.restarted(self.task.chain) > MAX_RESTARTS:
            return None
        return token
