"""The model can fail: each rule that is changed for a wrong one is caught, by the invariant it is there for."""

import pytest
from progress_model.mutations import MUTATIONS


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_wrong_rule_is_caught(mutation):
    explored = mutation.explore(500_000)
    assert explored.broken is not None, f"{explored.states} states, and nothing is wrong"
    assert explored.broken.number == mutation.breaks, "\n".join(explored.path)
    assert explored.path[-1] == str(explored.broken)
    assert len(explored.path) > 1, "the steps that lead to it are told"


def test_there_are_more_than_fifteen():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 15
