"""For tests of one's own: a source that follows a script, crashes included, and a clock that stands still.

Nothing in here waits, connects or draws random numbers. What drives DoFns without a runner needs Beam and is imported by name:
`gapless.testing.keyed_driver.KeyedDriver` for one with state and timers, and one that reads by a restriction by
`gapless.testing.splittable_driver.SplittableDriver`.
"""

from gapless.testing.manual_clock import ManualClock
from gapless.testing.scripted import Crash, ScriptedPage, ScriptedSession, ScriptedSource, WorkerCrash

__all__ = ["Crash", "ManualClock", "ScriptedPage", "ScriptedSession", "ScriptedSource", "WorkerCrash"]
