"""How a stream polls: how often it asks a chain that has nothing new, and how often it looks at the list."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Polling:
    """Seconds. `every`: until a chain that had nothing new is asked again, doubling up to `longest` while nothing comes;
    `look_every`: until the list of partitions is looked at again.

    >>> [Polling(every=1.0, longest=5.0).delay(idle) for idle in (1, 2, 3, 4, 5)]
    [1.0, 2.0, 4.0, 5.0, 5.0]
    """

    every: float = 1.0
    longest: float = 10.0
    look_every: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.every <= self.longest or self.look_every <= 0:
            raise ValueError("0 < every <= longest, and look_every above 0 (seconds)")

    @property
    def held(self) -> float:
        """Seconds until a held chain is tried again for which nobody has said when: six times the longest delay.

        >>> Polling().held
        60.0
        """
        return 6 * self.longest

    def delay(self, idle: int) -> float:
        """Seconds to wait after so many polls in a row (from 1) that brought nothing."""
        return float(min(self.longest, self.every * 2 ** min(idle - 1, 62)))
