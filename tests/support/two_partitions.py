"""A scripted source of two partitions: three pages in one, one page in the other, all of them certified."""

from gapless.progress import Bound
from gapless.testing import ScriptedPage, ScriptedSource


def two_partitions() -> ScriptedSource:
    return ScriptedSource(
        {
            "a": {
                None: ScriptedPage([("a1", 1), ("a2", 2)], "t1", Bound.through(2)),
                "t1": ScriptedPage([("a3", 3), ("a4", 4)], "t2", Bound.through(4)),
                "t2": ScriptedPage([("a5", 5)], None, Bound.through(9)),
            },
            "b": {None: ScriptedPage([("b1", 1)], None, Bound.through(9))},
        }
    )
