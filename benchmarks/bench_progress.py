"""Figures of the algebra: the frontier's moves by number of partitions, out-of-order completion, and the import.

    python benchmarks/bench_progress.py [--partitions 1000 100000 1000000] [--moves 300000]

A move raises one member's bound and asks for the minimum again. Every bound is distinct. Three workloads:

    in_turn   as `lowest`, where the members come in the order in which they lie in memory
    lowest    the member that holds the frontier moves above all others: every move repairs the minimum
    at_random a random member moves by a random amount
    creeping  the member that holds the frontier moves just above the next one
"""

import argparse
import gc
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from gapless.progress import Bound, Checkpoint, Frontier, Gaps, Ledger, Membership, PageAttempt, Terminal

Moves = Sequence[tuple[int, int]]
"""(number of the member, position it moves through)"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--moves", type=int, default=300_000)
    options = parser.parse_args()
    for workload in (in_turn, lowest, at_random, creeping):
        base = 0.0
        for partitions in options.partitions:
            cost = move_cost(workload, partitions, options.moves)
            base = base or cost
            print(
                f"frontier, {workload.__name__:9} {partitions:>9} partitions: {cost:6.3f} us a move, {cost / base:4.2f} x"
            )
    for events in (1_000, 100_000, 1_000_000):
        print(f"completion out of order, numbers {events:>9}: {completion_cost(events):6.3f} us")
    for pages in (10, 100):
        print(
            f"receipt out of order, ledger of {pages:>4} pages of 1000 events: {receipt_cost(pages):6.3f} us"
        )
    print(f"import gapless.progress:          {import_cost('import gapless.progress'):6.1f} ms")
    print(f"from gapless.progress import *:   {import_cost('from gapless.progress import *'):6.1f} ms")


def move_cost(workload: Callable[[int, int], tuple[list[int], Moves]], partitions: int, moves: int) -> float:
    """Microseconds a move, after the first minimum was taken."""
    starts, planned = workload(partitions, moves)
    members = [f"p{number:07d}" for number in range(partitions)]
    frontier = Frontier(Membership(1, "", frozenset(members)))
    for member, start in zip(members, starts, strict=True):
        frontier.advance(member, Bound.through(start))
    frontier.minimum()
    moves_by_name = [(members[number], Bound.through(position)) for number, position in planned]
    gc.collect()
    gc.disable()
    begun = time.process_time()
    for member, bound in moves_by_name:
        frontier.advance(member, bound)
        frontier.minimum()
    spent = time.process_time() - begun
    gc.enable()
    return spent / len(planned) * 1e6


def in_turn(partitions: int, moves: int) -> tuple[list[int], Moves]:
    return list(range(partitions)), [(move % partitions, partitions + move) for move in range(moves)]


def lowest(partitions: int, moves: int) -> tuple[list[int], Moves]:
    starts = list(range(partitions))
    random.Random(1).shuffle(starts)
    order = sorted(range(partitions), key=starts.__getitem__)
    return starts, [(order[move % partitions], partitions + move) for move in range(moves)]


def at_random(partitions: int, moves: int) -> tuple[list[int], Moves]:
    chance = random.Random(2)
    starts = chance.sample(range(partitions * 10), partitions)
    now = list(starts)
    planned = []
    for _ in range(moves):
        member = chance.randrange(partitions)
        now[member] += chance.randrange(1, 20)
        planned.append((member, now[member]))
    return starts, planned


def creeping(partitions: int, moves: int) -> tuple[list[int], Moves]:
    starts = [member * 10 for member in range(partitions)]
    planned: list[tuple[int, int]] = []
    holder, others = 0, 1
    while len(planned) < moves:
        holder_bound = (others % partitions) * 10 + (others // partitions) * partitions * 10 + 5
        planned.append((holder, holder_bound))
        holder, others = others % partitions, others + 1
    return starts, planned


def completion_cost(events: int) -> float:
    """Microseconds a completion, in random order, of all numbers."""
    order = list(range(events))
    random.Random(3).shuffle(order)
    gaps = Gaps()
    begun = time.process_time()
    for number in order:
        gaps.complete(number)
    return (time.process_time() - begun) / events * 1e6


def receipt_cost(pages: int) -> float:
    """Microseconds a receipt by event id, in random order over all open pages."""
    ledger = Ledger(Checkpoint(1, 0, "t0", None), limit=pages)
    ids = []
    for page in range(pages):
        events = tuple((f"e{page}-{event}", page * 1000 + event) for event in range(1000))
        ids += [event for event, _ in events]
        ledger.offer(PageAttempt(f"g{page}", f"t{page}", f"t{page + 1}", events))
    random.Random(4).shuffle(ids)
    begun = time.process_time()
    ledger.settle(ids, Terminal.DELIVERED)
    return (time.process_time() - begun) / len(ids) * 1e6


def import_cost(statement: str) -> float:
    """Milliseconds in a fresh interpreter, the best of five."""
    program = (
        f"import time; begun = time.perf_counter(); exec({statement!r}); print(time.perf_counter() - begun)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs) * 1e3


if __name__ == "__main__":
    main()
