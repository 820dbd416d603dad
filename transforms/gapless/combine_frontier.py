"""`CombineFrontier`: the minimum of the members' bounds over the full membership, with its epoch."""

from collections.abc import Iterable

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.pvalue import PCollection
from apache_beam.transforms import trigger, window

from gapless.progress_merge import FrontierHint, MembersSeen
from gapless.state_format import MembersSeenCoder
from gapless.updates import PartitionProgress


class CombineFrontier(beam.PTransform[PCollection[PartitionProgress], PCollection[FrontierHint]]):
    """One hint in a batch; in a stream one after each element, accumulating.

    The accumulator is partition -> bound, merged by maximum, and the minimum is taken over the whole membership: a minimum
    over panes of updates could never rise. Hints decide nothing; what is published is recomputed from durable rows."""

    def expand(self, progress: PCollection[PartitionProgress]) -> PCollection[FrontierHint]:
        combine = beam.CombineGlobally(MinimumOverMembership())
        if not progress.is_bounded:
            progress = progress | beam.WindowInto(
                window.GlobalWindows(),
                trigger=trigger.Repeatedly(trigger.AfterCount(1)),
                accumulation_mode=trigger.AccumulationMode.ACCUMULATING,
            )
        return (
            progress
            | "Minimum" >> combine.without_defaults().with_output_types(FrontierHint)
            | "Claims only" >> beam.Filter(_is_hint).with_output_types(FrontierHint)
        )


def _is_hint(hint: FrontierHint | None) -> bool:
    return hint is not None


class MinimumOverMembership(beam.CombineFn):
    """Also usable without a store: in tests, notebooks and storeless batches."""

    def create_accumulator(self) -> MembersSeen:
        return MembersSeen()

    def add_input(self, mutable_accumulator: MembersSeen, element: PartitionProgress) -> MembersSeen:
        mutable_accumulator.add(element)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[MembersSeen]) -> MembersSeen:
        merged = MembersSeen()
        merged.merge(accumulators)
        return merged

    def extract_output(self, accumulator: MembersSeen) -> FrontierHint | None:
        return accumulator.hint()

    def get_accumulator_coder(self) -> Coder:
        return MembersSeenCoder()
