"""Gaps are the numbers not yet completed below the highest completed one: out-of-order completion in space O(gaps).

Numbers run from a start upwards. Completed ones are kept as a prefix (everything below `through`), a word of bits where
a word holds both kinds, and runs of whole words. Every word and every run is bordered by a gap.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

_BITS = 64
_FULL = (1 << _BITS) - 1


class Gaps:
    """Which of the numbers start, start + 1, ... are complete. A completion costs O(log gaps).

    >>> gaps = Gaps()
    >>> gaps.complete(0), gaps.complete(2), gaps.complete(2)
    (True, True, False)
    >>> gaps.through, list(gaps.open(4))
    (1, [1, 3])
    """

    __slots__ = ("_partial", "_runs", "_start", "_through")

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self._through = 0
        self._partial: dict[int, int] = {}
        self._runs: list[int] = []

    @property
    def through(self) -> int:
        """Everything below this number is complete; this number is not. Law: it never falls.

        >>> Gaps(5).through
        5
        """
        return self._start + self._through

    @property
    def settled(self) -> bool:
        """Whether nothing above `through` is complete: there is no gap.

        >>> gaps = Gaps(); gaps.complete(1), gaps.settled, gaps.complete(0), gaps.settled
        (True, False, True, True)
        """
        return not self._partial and not self._runs

    def complete(self, number: int) -> bool:
        """Complete one number; False where it was complete already. Raises ValueError below the start.

        Law: the order of completions does not matter, and completing again changes nothing.

        >>> gaps = Gaps(); gaps.complete(3), gaps.complete(3)
        (True, False)
        """
        offset = number - self._start
        if offset <= self._through:
            if offset < self._through:
                if offset < 0:
                    raise ValueError(f"{number} lies below the start {self._start}")
                return False
            self._through = offset + 1
            if self._partial or self._runs:
                self._close()
            return True
        word = offset >> 6
        bit = 1 << (offset & 63)
        bits = self._partial.get(word)
        if bits is None:
            if self._runs and bisect_right(self._runs, word) & 1:
                return False
            self._partial[word] = bit
            return True
        if bits & bit:
            return False
        bits |= bit
        if bits == _FULL:
            del self._partial[word]
            self._add_run(word, word + 1)
        else:
            self._partial[word] = bits
        return True

    def complete_range(self, first: int, stop: int) -> None:
        """Complete every number of first <= number < stop, in time O(gaps inside) however long the range is.

        >>> gaps = Gaps()
        >>> gaps.complete_range(10, 1_000_000); gaps.through, gaps.entries
        (0, 3)
        """
        begin, end = first - self._start, stop - self._start
        if begin < 0:
            raise ValueError(f"{first} lies below the start {self._start}")
        if begin >= end:
            return
        if begin <= self._through:
            if end > self._through:
                self._through = end
                self._forget_below(end)
                self._close()
            return
        first_whole, end_whole = -(-begin >> 6), end >> 6
        if first_whole > end_whole:
            self._add_bits(end_whole, begin & 63, end & 63)
            return
        if begin & 63:
            self._add_bits(first_whole - 1, begin & 63, _BITS)
        if end & 63:
            self._add_bits(end_whole, 0, end & 63)
        if first_whole < end_whole:
            for word in [word for word in self._partial if first_whole <= word < end_whole]:
                del self._partial[word]
            self._add_run(first_whole, end_whole)

    def __contains__(self, number: int) -> bool:
        offset = number - self._start
        if offset < self._through:
            return offset >= 0
        word = offset >> 6
        bits = self._partial.get(word)
        if bits is not None:
            return bool(bits >> (offset & 63) & 1)
        return bool(bisect_right(self._runs, word) & 1)

    def open(self, stop: int) -> Iterator[int]:
        """The numbers below `stop` that are not complete, ascending.

        >>> gaps = Gaps(); gaps.complete(1), list(gaps.open(4))
        (True, [0, 2, 3])
        """
        number = self.through
        while number < stop:
            if number not in self:
                yield number
            number += 1

    @property
    def entries(self) -> int:
        """How much is stored: at most four for each gap.

        >>> gaps = Gaps(); gaps.complete_range(1, 10**9); gaps.entries
        3
        """
        return len(self._partial) + len(self._runs)

    def _add_bits(self, word: int, low: int, high: int) -> None:
        """Complete bits low <= bit < high of one word beyond the prefix."""
        if word not in self._partial and bisect_right(self._runs, word) & 1:
            return
        bits = self._partial.get(word, 0) | ((1 << high) - (1 << low))
        if bits == _FULL:
            self._partial.pop(word, None)
            self._add_run(word, word + 1)
        else:
            self._partial[word] = bits

    def _add_run(self, first: int, stop: int) -> None:
        """Unite the runs with first <= word < stop. `_runs` holds start, stop, start, stop, ... ascending."""
        runs = self._runs
        left, right = bisect_left(runs, first), bisect_right(runs, stop)
        runs[left:right] = ([] if left & 1 else [first]) + ([] if right & 1 else [stop])

    def _close(self) -> None:
        """Let the prefix swallow what now borders it."""
        while True:
            word, low = divmod(self._through, _BITS)
            bits = self._partial.get(word)
            if bits is not None:
                rest = bits >> low
                ones = (~rest & (rest + 1)).bit_length() - 1
                if low + ones == _BITS or rest >> ones == 0:
                    del self._partial[word]
                self._through += ones
                if low + ones < _BITS:
                    return
            elif low == 0 and self._runs and self._runs[0] == word:
                self._through = self._runs[1] * _BITS
                del self._runs[:2]
            else:
                return

    def _forget_below(self, end: int) -> None:
        """Drop what a longer prefix already says; `end` is its new end."""
        words = end >> 6
        for word in [word for word in self._partial if word < words]:
            del self._partial[word]
        cut = bisect_right(self._runs, words)
        if cut & 1:
            self._through = max(self._through, self._runs[cut] * _BITS)
            cut += 1
        del self._runs[:cut]
