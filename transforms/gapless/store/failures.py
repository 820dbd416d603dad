"""What the databases' errors mean, as errors of the store: what happened and what to do, without statements or values."""

from sqlalchemy.exc import DBAPIError, IntegrityError

from gapless.errors import StoreBusy, StoreError, StoreUnreadable, StoreUnwritable


class ConnectionLost(StoreUnreadable):
    """The connection died, or the server gave the transaction up: what was under way may be tried again, once, with care."""


_DAMAGED = "restore it from a backup, or start over with a new store"
_FULL = "make room and run again: what was promoted before stays, and is not read again"
_WRITABLE = "let the user that runs gapless write the file and its folder (SQLite keeps -wal and -shm files beside it)"

_SQLITE = (
    ("file is not a database", StoreUnreadable, "not a SQLite database", "check the path of the store"),
    ("malformed", StoreUnreadable, "the database is damaged", _DAMAGED),
    ("unsupported file format", StoreUnreadable, "the database is damaged", _DAMAGED),
    ("disk is full", StoreUnwritable, "no space is left for the store", _FULL),
    ("readonly database", StoreUnwritable, "the store cannot be written", _WRITABLE),
    ("unable to open database file", StoreUnreadable, "the store's file cannot be opened", _WRITABLE),
    ("is locked", StoreBusy, "another process is writing and did not finish in time", "try again"),
    ("no such table", StoreUnreadable, "the store is damaged", _DAMAGED),
    ("no such column", StoreUnreadable, "the store is damaged", _DAMAGED),
)

_POSTGRESQL = {
    "28": (StoreUnreadable, "the server refuses the login", "check user, password and pg_hba.conf"),
    "3D": (StoreUnreadable, "the database does not exist", "create it, or correct the store's URL"),
    "3F": (
        StoreUnwritable,
        "no schema to create the tables in",
        "create a schema and put it on the role's search_path",
    ),
    "42501": (StoreUnwritable, "the role lacks a permission", "grant it, or use another role"),
    "42": (StoreUnreadable, "the store is damaged", _DAMAGED),
    "53100": (StoreUnwritable, "no space is left for the store", _FULL),
    "53": (StoreUnreadable, "the server is short of resources", "try again later"),
    "55P03": (StoreBusy, "another session holds the lock and did not finish in time", "try again"),
    "25006": (StoreUnwritable, "the server only reads (a standby?)", "connect to the primary"),
    "40": (ConnectionLost, "the server gave the transaction up", "try again"),
    "57": (ConnectionLost, "the server ended the connection", "try again when the server is up"),
    "08": (ConnectionLost, "the connection to the server broke", "try again when the server is up"),
    "XX": (StoreUnreadable, "the server met damaged data", _DAMAGED),
    "58": (StoreUnreadable, "the server's disk failed", "ask its operator"),
}


def store_error(error: DBAPIError, where: str, *, writing: bool) -> StoreError:
    """`error` as what it means for the store. `writing`: an I/O error then is one of writing."""
    said = _first_line(error.orig)
    sqlstate = getattr(error.orig, "sqlstate", None)
    if error.connection_invalidated:
        return ConnectionLost(
            f"the connection to the store broke: {said}",
            where=where,
            remedy="try again when the server is up",
        )
    if isinstance(error, IntegrityError):
        return StoreUnreadable(f"the store contradicts itself: {said}", where=where, remedy=_DAMAGED)
    if isinstance(sqlstate, str):
        for known in (sqlstate, sqlstate[:2]):
            if known in _POSTGRESQL:
                kind, what, remedy = _POSTGRESQL[known]
                return kind(f"{what}: {said}", where=where, remedy=remedy)
    if "readonly database" in said and not writing:
        return StoreUnreadable(
            f"the store cannot even be read in a folder like this: {said}", where=where, remedy=_WRITABLE
        )
    for sign, kind, what, remedy in _SQLITE:
        if sign in said:
            return kind(f"{what}: {said}", where=where, remedy=remedy)
    if "disk I/O error" in said and writing:
        return StoreUnwritable(f"the store's file cannot be written: {said}", where=where, remedy=_FULL)
    return StoreUnreadable(f"the store answers with an error: {said}", where=where)


def connect_error(error: DBAPIError, where: str) -> StoreError:
    """Why no connection was made. A server that was never reached says so in words only, without a code."""
    said = _first_line(error.orig)
    if any(sign in said for sign, *_ in _SQLITE):
        return store_error(error, where, writing=False)
    return StoreUnreadable(
        f"the store cannot be reached: {said}",
        where=where,
        remedy="check that the server is up, and user, password, host and port",
    )


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
