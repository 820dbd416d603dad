"""Scripts of chains that grow: pages of one event each, and pages of a source that has nothing further for now."""

from gapless.progress import Bound
from gapless.testing import ScriptedPage


def pages_from(count: int) -> dict[str | None, ScriptedPage]:
    """`count` pages of one event each, certified; the last is the chain's end."""
    pages = growing(count)
    last = list(pages)[-1]
    pages[last] = ScriptedPage(pages[last].events, None, pages[last].certificate)
    return pages


def growing(count: int, first: int = 0) -> dict[str | None, ScriptedPage]:
    """`count` pages of one event each from number `first` on, certified; the page after the last has to be scripted."""
    return {
        token(n): ScriptedPage([(f"e{n}", n)], token(n + 1), Bound.through(n))
        for n in range(first, first + count)
    }


def idle(at: str | None) -> ScriptedPage:
    """Nothing further at present."""
    return ScriptedPage((), at, caught_up=True)


def token(n: int) -> str | None:
    return None if n == 0 else f"t{n}"
