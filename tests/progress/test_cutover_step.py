"""The rule of a cutover on its own: what the store's tests would show only slowly, or not at all."""

import pytest

from gapless.progress import Bound, ReadingAgain, Seal, Standing, step_towards_list

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
