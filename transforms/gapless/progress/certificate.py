"""A certificate is the source's own statement that it has enumerated everything up to a bound.

An assertion (an operator assumes) and an estimate (a source guesses) carry a bound too. The three are unrelated types:
none can be passed where another is expected, neither to the type checker nor at run time.
"""

from dataclasses import dataclass

from gapless.progress.bound import Bound


@dataclass(frozen=True, slots=True)
class Certificate:
    """`bound` as stated by the source; `issuer` names the statement (`page`, `header`, `before`, ...).

    Raises TypeError unless `bound` is a Bound; so do the two others.

    >>> Certificate(Bound.through(7), "page").bound
    Bound.through(7)
    """

    bound: Bound
    issuer: str

    def __post_init__(self) -> None:
        _require_bound(self.bound)


@dataclass(frozen=True, slots=True)
class Assertion:
    """A bound an operator assumes, with the reason to show beside every frontier that rests on it.

    Raises ValueError without a reason.

    >>> Assertion(Bound.through(7), "2013 is over") == Certificate(Bound.through(7), "2013 is over")
    False
    """

    bound: Bound
    reason: str

    def __post_init__(self) -> None:
        _require_bound(self.bound)
        if not self.reason:
            raise ValueError("an assertion needs a reason: it is shown beside the frontier")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A bound a source guesses. For display only: it never enters a frontier.

    >>> Estimate(Bound.through(7)) == Certificate(Bound.through(7), "page")
    False
    """

    bound: Bound

    def __post_init__(self) -> None:
        _require_bound(self.bound)


def require_certificate(value: object) -> Certificate | None:
    """`value` itself where it is a certificate or None. Raises TypeError for an assertion, an estimate or anything else.

    >>> require_certificate(Certificate(Bound.before(3), "page")).bound
    Bound.before(3)
    >>> require_certificate(Estimate(Bound.before(3)))
    Traceback (most recent call last):
    TypeError: Estimate(bound=Bound.before(3)) is no certificate: only the source's own statement is evidence
    """
    if value is None or isinstance(value, Certificate):
        return value
    raise TypeError(f"{value!r} is no certificate: only the source's own statement is evidence")


def _require_bound(value: object) -> None:
    if not isinstance(value, Bound):
        raise TypeError(f"{value!r} is no Bound")
