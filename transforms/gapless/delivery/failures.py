"""What the databases' errors mean for a message log: what happened and what to do, without statements or values."""

from sqlalchemy.exc import DBAPIError

from gapless.errors import DatabaseUnavailable, MessageLogError, NotAMessageLog


class ConnectionBroke(DatabaseUnavailable):
    """The connection died: what was under way may or may not have been done, and asking again tells."""


_AGAIN = "try again when the database is up: what is claimed or covered stays"
_COLUMN = "look what has changed: gapless delivery check"

_POSTGRESQL: dict[str, tuple[type[MessageLogError], str, str]] = {
    "28": (DatabaseUnavailable, "the server refuses the login", "check user, password and pg_hba.conf"),
    "3D": (DatabaseUnavailable, "the database does not exist", "correct the URL"),
    "42501": (NotAMessageLog, "the role lacks a privilege", "grant it, or use another role"),
    "42P01": (
        NotAMessageLog,
        "a table is missing",
        "`gapless delivery install JOB`, or MessageLog.install(), creates gapless's own",
    ),
    "42703": (NotAMessageLog, "a column is missing", _COLUMN),
    "25006": (NotAMessageLog, "the server only reads", "connect to the primary"),
    "22": (NotAMessageLog, "a value does not fit its column", "give the shard as the table has it"),
    "40": (DatabaseUnavailable, "the server gave the transaction up", _AGAIN),
    "53": (DatabaseUnavailable, "the server is short of resources", _AGAIN),
    "54": (
        NotAMessageLog,
        "a value is longer than an index takes",
        "shorten the shard, or declare a column with a digest of it, such as its md5, as the shard",
    ),
    "55P03": (DatabaseUnavailable, "another session holds a lock", _AGAIN),
    "57": (DatabaseUnavailable, "the server ended the statement", _AGAIN),
    "08": (DatabaseUnavailable, "the connection to the server broke", _AGAIN),
}

_SQLITE: tuple[tuple[str, type[MessageLogError], str, str], ...] = (
    ("is locked", DatabaseUnavailable, "another process is writing and did not finish in time", "try again"),
    ("disk is full", DatabaseUnavailable, "no space is left", "make room: what is claimed or covered stays"),
    (
        "readonly database",
        NotAMessageLog,
        "the database cannot be written",
        "let this user write the file and its folder",
    ),
    ("unable to open", DatabaseUnavailable, "the file cannot be opened", "check the path in the URL"),
    ("not a database", NotAMessageLog, "the file is no SQLite database", "check the path in the URL"),
    ("malformed", NotAMessageLog, "the database is damaged", "restore it from a backup"),
    ("no such column", NotAMessageLog, "a column is missing", _COLUMN),
    ("no query solution", NotAMessageLog, "an index no longer has the columns of the log", _COLUMN),
    (
        "no such index",
        NotAMessageLog,
        "an index is missing that the log was opened with",
        "`gapless delivery install JOB`, or MessageLog.install(), creates it; then open the log again",
    ),
    (
        "no such table",
        NotAMessageLog,
        "a table is missing",
        "`gapless delivery install JOB`, or MessageLog.install(), creates gapless's own",
    ),
)


def database_error(error: DBAPIError, where: str) -> MessageLogError:
    """`error` as what it means. Where a retry may help it is a DatabaseUnavailable."""
    lines = str(error.orig).strip().splitlines()
    said = lines[0] if lines else type(error.orig).__name__
    if error.connection_invalidated:
        return ConnectionBroke(f"the connection broke: {said}", where=where, remedy=_AGAIN)
    sqlstate = getattr(error.orig, "sqlstate", None)
    if isinstance(sqlstate, str):
        for known in (sqlstate, sqlstate[:2]):
            if known in _POSTGRESQL:
                kind, what, remedy = _POSTGRESQL[known]
                return kind(f"{what}: {said}", where=where, remedy=remedy)
    for sign, kind, what, remedy in _SQLITE:
        if sign in said:
            return kind(f"{what}: {said}", where=where, remedy=remedy)
    if sqlstate is None and type(error).__name__ == "OperationalError":
        return DatabaseUnavailable(f"the database cannot be reached: {said}", where=where, remedy=_AGAIN)
    return MessageLogError(
        f"the database answers with an error: {said}", where=where, remedy="see what it says"
    )
