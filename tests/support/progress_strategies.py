"""Hypothesis strategies for positions, bounds and domains."""

from hypothesis import strategies as st

from gapless.progress import (
    Bound,
    Domain,
    IntegerDomain,
    ListDomain,
    Position,
    TextDomain,
    TimestampDomain,
)
from gapless.progress.instants import PRECISIONS

integers = st.one_of(
    st.integers(-300, 300),
    st.integers(),
    st.integers(-(1 << 70), 1 << 70),
    st.builds(
        lambda sign, bits, low: sign * ((1 << bits) + low),
        st.sampled_from([-1, 1]),
        st.integers(0, 2000),
        st.integers(-2, 2),
    ),
)
texts = st.one_of(
    st.text(
        alphabet=st.sampled_from(
            ["\x00", "\x01", "a", "b", "\x7f", "\x80", "\uffff", "\U0001f600", "\U0010ffff"]
        )
    ),
    st.text(alphabet=st.characters(exclude_categories=["Cs"])),
)
FIRST_SECOND = -62_167_219_200
"""0000-01-01T00:00:00Z"""
LAST_SECOND = 253_402_300_799
"""9999-12-31T23:59:59Z"""


def instants(places: int) -> st.SearchStrategy[int]:
    unit = 10**places
    return st.one_of(
        st.integers(FIRST_SECOND * unit, (LAST_SECOND + 1) * unit - 1),
        st.integers(-2 * unit, 2 * unit),
    )


leaf_domains: st.SearchStrategy[Domain] = st.one_of(
    st.just(IntegerDomain()),
    st.just(TextDomain()),
    st.builds(
        TimestampDomain,
        st.sampled_from(sorted(PRECISIONS)),
        st.sampled_from(["rfc3339", "unix_s", "unix_ns"]),
    ),
)
domains: st.SearchStrategy[Domain] = st.recursive(
    leaf_domains,
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda items: ListDomain(tuple(items))),
    max_leaves=5,
)


def positions(domain: Domain) -> st.SearchStrategy[Position]:
    if isinstance(domain, ListDomain):
        return st.tuples(*map(positions, domain.items))
    if isinstance(domain, TimestampDomain):
        return instants(PRECISIONS[domain.precision])
    return texts if isinstance(domain, TextDomain) else integers


def bounds(of: st.SearchStrategy[Position]) -> st.SearchStrategy[Bound]:
    return st.builds(Bound, of, st.booleans())


def bounds_in(domain: Domain) -> st.SearchStrategy[Bound]:
    return bounds(positions(domain))


small_bounds = bounds(st.integers(0, 8))
domain_and_bounds = domains.flatmap(
    lambda domain: st.tuples(st.just(domain), st.lists(bounds_in(domain), min_size=2, max_size=6))
)
domain_and_position = domains.flatmap(lambda domain: st.tuples(st.just(domain), positions(domain)))
