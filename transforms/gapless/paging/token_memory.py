"""Whether a chain of page tokens runs in a circle: a token is met again, and nothing new has arrived since.

Up to a limit every token since the last new event is remembered, as a hash, and a circle is found at its
first repetition. Beyond it Brent's algorithm goes on in constant memory: one token is kept and compared,
and replaced each time the distance to it reaches the next power of two. It finds every circle too, at the
latest after three times its length and approach."""

DEFAULT_LIMIT = 100_000


class TokenMemory:
    """The tokens of one chain since its last new event. `limit` is how many are remembered singly.

    >>> memory = TokenMemory(None)
    >>> memory.meets_again("a", something_new=False), memory.meets_again("b", something_new=False)
    (False, False)
    >>> memory.meets_again("a", something_new=False)
    True
    """

    __slots__ = ("_distance", "_kept", "_limit", "_power", "_seen")

    def __init__(self, start: str | None, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._seen = {hash(start)}
        self._kept: int | None = None
        self._distance, self._power = 0, 1

    def meets_again(self, token: str, *, something_new: bool) -> bool:
        """Take in a page: its next token, and whether it brought something new. True where that closes a
        circle."""
        if something_new:
            self._forget()
        step = hash(token)
        if step in self._seen or step == self._kept:
            return True
        if len(self._seen) < self._limit:
            self._seen.add(step)
        else:
            self._keep(step)
        return False

    def _keep(self, step: int) -> None:
        self._distance += 1
        if self._distance >= self._power:
            self._kept, self._distance, self._power = step, 0, 2 * self._power

    def _forget(self) -> None:
        self._seen = set()
        self._kept = None
        self._distance, self._power = 0, 1
