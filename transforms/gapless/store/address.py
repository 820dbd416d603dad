"""A store's address: what a user writes as its URL, checked, and shown without its password."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from gapless.errors import ConfigurationError

_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgresql+psycopg", "postgres")
_ALLOWED = "allowed: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"


@dataclass(frozen=True, slots=True)
class Address:
    """`path` is the file of a SQLite store, None on PostgreSQL; `url` is what SQLAlchemy connects to, password included."""

    url: URL
    path: Path | None

    def __repr__(self) -> str:
        return f"Address({self.shown})"

    @property
    def shown(self) -> str:
        """For messages and logs: never a password, also not one among the options."""
        if self.path is not None:
            return f"store sqlite:///{self.path}"
        host = self.url.host or self.url.query.get("host", "")
        port = f":{self.url.port}" if self.url.port else ""
        user = f"{self.url.username}@" if self.url.username else ""
        return f"store postgresql://{user}{host}{port}/{self.url.database or ''}"


def parse_address(url: str, password: str | None = None) -> Address:
    """Raises ConfigurationError where the URL is none, or names a kind of database that is no store."""
    if url.split(":", 1)[0] in _SQLITE:
        return _sqlite(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # What could not be parsed may hold a password anywhere, and so may the parser's message.
        raise ConfigurationError("the store's URL cannot be read", remedy=_ALLOWED) from None
    if parsed.drivername in _POSTGRESQL:
        return _postgresql(parsed, password)
    raise ConfigurationError(
        f"{parsed.drivername!r} is no kind of store", where="in the store's URL", remedy=_ALLOWED
    )


def _sqlite(url: str) -> Address:
    """The path stands in the URL as it is on disk: nothing in it is decoded."""
    _, slashes, path = url.partition(":///")
    where = f"in the store's URL {url}"
    if not slashes and url.partition("://")[2]:
        raise ConfigurationError(
            "a SQLite store has no host",
            where=where,
            remedy="three slashes before a relative path (sqlite:///progress.db), four before an absolute one",
        )
    if "?" in path:
        raise ConfigurationError("a SQLite store takes no options", where=where, remedy=_ALLOWED)
    if not path or path == ":memory:" or path.startswith("file:"):
        raise ConfigurationError(
            "a SQLite store needs a file: progress that ends with the process is none",
            where=where,
            remedy=_ALLOWED,
        )
    return Address(URL.create("sqlite", database=path), Path(path))


def _postgresql(url: URL, password: str | None) -> Address:
    if not url.database:
        raise ConfigurationError(
            "the store's URL names no database",
            where="in the store's URL",
            remedy="postgresql+psycopg://USER@HOST/DATABASE",
        )
    secrets = [name for name in ("password", "sslpassword") if name in url.query]
    if secrets:
        raise ConfigurationError(
            f"a password does not belong among the options: {', '.join(secrets)}",
            where="in the store's URL",
            remedy="give it as `password`, a reference such as {env: NAME}",
        )
    url = url.set(drivername="postgresql+psycopg")
    return Address(url if password is None else url.set(password=password), None)
