"""gapless: read independently paginated event partitions on Apache Beam, and publish what is provably complete.

    progress/      the algebra: bounds, domains, certificates, ledger, membership, frontier (standard library only)
    paging/        what a source implements, the judgement over a chain's pages, the HTTP source
    store/         durable progress: schema, statements, reading
    effects/       what an effect implements, Parquet, dead letters
    delivery/      message logs: a delivery frontier without gaps, claims and coverage (no Beam)
    settling/      one chain read, and applied and promoted in one call or emitted (no Beam)
    plan_partitions, read_pages, settle_pages, track_partitions, combine_frontier, publish_frontier, complete_through
                   the transforms
    polling        `Polling`: what makes a stream of them, and how often it asks
    summarise_covered      message logs on Beam, many shards in parallel
    outcomes       what a pipeline of one's own says of the pages it was given: delivered, dead-lettered, left out
    tracking/      one chain that is settled in the pipeline: open pages, their outcomes, promotion (no Beam)
    reading        `Progress`: where the frontier is, for programs without Beam
    epochs         `Epochs`: membership by hand: cutover, an operator's seal, a rebuild
    audit/, history        what is claimed, derived anew from its evidence; and how it came to stand where it does
    notebook       results as HTML
    testing/       a source that follows a script, a clock that stands still, drivers of DoFns: for tests of one's own

Names are resolved when they are first used, so that `import gapless.progress` needs neither Beam nor Arrow.
"""

from typing import TYPE_CHECKING

from gapless._version import __version__

if TYPE_CHECKING:
    from gapless.combine_frontier import CombineFrontier
    from gapless.complete_through import Completed, CompleteThrough
    from gapless.delivery.message_log import MessageLog
    from gapless.effects.dead_letters import ParquetDeadLetters
    from gapless.effects.parquet import ParquetEffect
    from gapless.emitted_page import EmittedPage, Event, LetterOf, Outcome
    from gapless.epochs import Epochs
    from gapless.outcomes import dead_lettered, delivered, left_out, part
    from gapless.paging.http import HttpSource
    from gapless.plan_partitions import PlanPartitions
    from gapless.polling import Polling
    from gapless.publish_frontier import PublishFrontier
    from gapless.read_pages import ReadPages
    from gapless.reading import Progress
    from gapless.settle_pages import SettleInPlace, SettlePages
    from gapless.settling.retrying import RetryPolicy
    from gapless.store_ref import StoreRef
    from gapless.summarise_covered import SummariseCovered
    from gapless.track_partitions import TrackPartitions
    from gapless.updates import FrontierUpdate, PartitionProgress

_HOMES = {
    "CombineFrontier": "gapless.combine_frontier",
    "CompleteThrough": "gapless.complete_through",
    "Completed": "gapless.complete_through",
    "EmittedPage": "gapless.emitted_page",
    "Epochs": "gapless.epochs",
    "Event": "gapless.emitted_page",
    "FrontierUpdate": "gapless.updates",
    "HttpSource": "gapless.paging.http",
    "LetterOf": "gapless.emitted_page",
    "MessageLog": "gapless.delivery.message_log",
    "Outcome": "gapless.emitted_page",
    "ParquetDeadLetters": "gapless.effects.dead_letters",
    "ParquetEffect": "gapless.effects.parquet",
    "PartitionProgress": "gapless.updates",
    "PlanPartitions": "gapless.plan_partitions",
    "Polling": "gapless.polling",
    "Progress": "gapless.reading",
    "PublishFrontier": "gapless.publish_frontier",
    "ReadPages": "gapless.read_pages",
    "RetryPolicy": "gapless.settling.retrying",
    "SettleInPlace": "gapless.settle_pages",
    "SettlePages": "gapless.settle_pages",
    "StoreRef": "gapless.store_ref",
    "SummariseCovered": "gapless.summarise_covered",
    "TrackPartitions": "gapless.track_partitions",
    "dead_lettered": "gapless.outcomes",
    "delivered": "gapless.outcomes",
    "left_out": "gapless.outcomes",
    "part": "gapless.outcomes",
}

__all__ = [
    "CombineFrontier",
    "CompleteThrough",
    "Completed",
    "EmittedPage",
    "Epochs",
    "Event",
    "FrontierUpdate",
    "HttpSource",
    "LetterOf",
    "MessageLog",
    "Outcome",
    "ParquetDeadLetters",
    "ParquetEffect",
    "PartitionProgress",
    "PlanPartitions",
    "Polling",
    "Progress",
    "PublishFrontier",
    "ReadPages",
    "RetryPolicy",
    "SettleInPlace",
    "SettlePages",
    "StoreRef",
    "SummariseCovered",
    "TrackPartitions",
    "__version__",
    "dead_lettered",
    "delivered",
    "left_out",
    "part",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'gapless' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
