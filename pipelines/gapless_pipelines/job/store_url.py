"""Which stores a job file may name: the store's own word on its URL, and no password in it."""

from pathlib import Path

from pydantic_core import PydanticCustomError

from gapless.errors import ConfigurationError

PATTERN = r"^(sqlite:///|postgres(ql)?(\+psycopg)?://)"


def checked_store_url(url: str) -> str:
    """The URL as it is. Raises PydanticCustomError, which never repeats it: it may hold a password."""
    # SQLAlchemy comes with it, which is of no use to who only asks for a schema.
    from gapless.store.address import parse_address

    try:
        address = parse_address(url)
    except ConfigurationError as error:
        raise _refusal(error.what, error.remedy) from None
    if address.url.password is not None:
        raise _refusal("a password in the URL", "the URL without it, and beside it `password: {env: NAME}`")
    if address.path is not None and str(address.path).startswith("~"):
        raise _refusal("`~` is not followed here", "the path written out, or ${HOME}")
    return url


def located(url: str, folder: Path) -> str:
    """The same store from wherever it is opened: a relative SQLite path lies in `folder`, as SQLAlchemy has it.

    >>> located("sqlite:///progress.db", Path("/home/me"))
    'sqlite:////home/me/progress.db'
    """
    from gapless.store.address import parse_address

    path = parse_address(url).path
    return url if path is None else f"sqlite:///{folder / path}"


def _refusal(what: str, allowed: str) -> PydanticCustomError:
    return PydanticCustomError("store_url", "{what}; {allowed}", {"what": what, "allowed": allowed})
