"""The rule of a cutover on its own: what the store's tests would show only slowly, or not at all."""

import pytest

from gapless.progress import Bound, Handoff, Moves, ReadingAgain, Seal, Standing, step_towards_list

AT = Bound.through(10)


def standing(chain, partition, generation="r1", *, member=False, listed=True, bound=AT, seal=None):
    return Standing(chain, partition, generation, member, listed, bound, seal=seal)


def codes(step):
    return [(blocker.code, blocker.partition) for blocker in step.missing]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_long_line_of_descent_is_followed_without_going_over_it_again_and_again(backwards):
    """Each of 30,000 ended where the next carries on; only the last is there."""
    count = 30_000
    line = [
        standing(number, f"p{number}", member=True, seal=Seal(AT, (f"p{number + 1}",)))
        for number in range(count)
    ]
    line.append(standing(count, f"p{count}", member=True))
    given = line[::-1] if backwards else line
    step = step_towards_list("r1", given, observed="r1", frontier=AT)
    assert step.leaving == tuple(range(count))
    assert step.missing == ()


def test_one_that_names_a_successor_twice_leaves_when_that_one_is_there():
    seal = Seal(AT, ("b", "b"))
    step = step_towards_list(
        "r1",
        [standing(1, "a", member=True, seal=seal), standing(2, "b", member=True)],
        observed="r1",
        frontier=AT,
    )
    assert step.leaving == (1,)


class TestReadingAgain:
    def test_one_that_ended_behind_the_frontier_stands_in_for_nobody_until_its_successors_are_known(self):
        """What it held beyond its end lies with a successor nobody has named: through 50 does not stand in for through 100."""
        old = standing(1, "p", member=True, bound=Bound.through(100))
        new = standing(2, "p", "r2", bound=Bound.through(50), seal=Seal(Bound.through(50), None))
        step = step_towards_list(
            "r1", [old, new], observed="r2", frontier=Bound.through(100), proof=ReadingAgain()
        )
        assert not step.changes
        assert codes(step) == [("missing_successor", "p")]

    def test_one_that_ended_behind_the_frontier_comes_in_and_leaves_with_its_successor(self):
        old = standing(1, "p", member=True, bound=Bound.through(100))
        new = standing(2, "p", "r2", bound=Bound.through(50), seal=Seal(Bound.through(50), ("q",)))
        heir = standing(3, "q", "r2", bound=Bound.through(100))
        step = step_towards_list(
            "r1", [old, new, heir], observed="r2", frontier=Bound.through(100), proof=ReadingAgain()
        )
        assert (step.entering, step.leaving, step.replaced) == ((2, 3), (2,), (1,))

    def test_one_that_ended_at_or_beyond_the_frontier_comes_in_and_stays_until_its_successors_are_known(self):
        old = standing(1, "p", member=True, bound=Bound.through(40))
        new = standing(2, "p", "r2", bound=Bound.through(50), seal=Seal(Bound.through(50), None))
        step = step_towards_list(
            "r1", [old, new], observed="r2", frontier=Bound.through(40), proof=ReadingAgain()
        )
        assert (step.entering, step.leaving) == ((2,), ())


class TestReadUnderAGenerationBetween:
    """r1 is the epoch's, r3 the latest; `c` was first seen under r2. An event that was c's under r1, elsewhere under r2, and c's
    again under r3 lies behind its token, and is in transit for nobody."""

    HANDOFF = Handoff(Bound.through(50), settled=True)
    MEMBER = standing(1, "a", member=True)
    BETWEEN = standing(2, "c", "r2", bound=Bound.through(70))

    def decided(self, *standings, proof=HANDOFF):
        return step_towards_list("r1", [self.MEMBER, *standings], observed="r3", frontier=AT, proof=proof)

    def test_a_handoff_says_nothing_of_what_it_lacks(self):
        step = self.decided(self.BETWEEN)
        assert not step.changes
        assert codes(step) == [("not_joined", "c")]
        assert (
            "read under routing generation 'r2', of which nothing proves what moved since"
            in step.missing[0].detail
        )

    def test_it_is_dropped_for_the_chain_that_reads_its_partition_anew(self):
        step = self.decided(self.BETWEEN, standing(3, "c", "r3", bound=None))
        assert (step.generation, step.rerouted, step.dropped) == ("r3", (1,), (2,))
        assert codes(step) == [("not_joined", "c")], "which is a newcomer as any other"
        assert self.decided(self.BETWEEN, standing(3, "c", "r3")).entering == (3,)

    def test_the_sources_promise_says_that_nothing_moved_behind_it(self):
        step = self.decided(self.BETWEEN, proof=Moves("never behind a certified bound"))
        assert (step.rerouted, step.dropped, step.entering) == ((1, 2), (), (2,))

    def test_an_operators_word_lets_it_leave(self):
        ended = standing(2, "c", "r2", listed=False, seal=Seal(AT, None, decommissioned=True))
        step = self.decided(ended)
        assert (step.leaving, step.missing) == ((2,), ())
