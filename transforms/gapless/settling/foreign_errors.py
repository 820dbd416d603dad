"""What a source or an effect raises, whoever wrote it, as an error of the tree: a partition's state, and no end of the job."""

from collections.abc import Iterator
from contextlib import contextmanager

from gapless.errors import (
    ConfigurationError,
    EffectError,
    InvalidPage,
    NotComparable,
    PositionError,
    SourceError,
    SourceUnavailable,
    StoreError,
)


@contextmanager
def of_source(where: str) -> Iterator[None]:
    """Lets SourceError, and what concerns the whole job, pass; any other exception becomes a SourceError."""
    try:
        yield
    except (SourceError, StoreError, ConfigurationError):
        raise
    except (NotComparable, PositionError) as error:
        raise InvalidPage(error.what, where=where, remedy=error.remedy) from error
    except Exception as error:
        raise SourceUnavailable(f"source raised {_said(error)}", where=where) from error


@contextmanager
def of_effect() -> Iterator[None]:
    """Lets EffectError, and what concerns the whole job, pass; any other exception becomes an EffectError."""
    try:
        yield
    except (EffectError, StoreError, ConfigurationError):
        raise
    except Exception as error:
        raise EffectError(f"effect raised {_said(error)}") from error


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
