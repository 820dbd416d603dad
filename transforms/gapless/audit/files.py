"""Promoted files as they lie there now: content, size and rows against the record that lists each."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from gapless.audit.contradiction import Checked, Contradiction
from gapless.store.evidence import Evidence, Record
from gapless.store.store import Store

_DIGEST_IN_NAME: Final = re.compile(r"-([0-9a-f]{32})\.parquet$")


@dataclass(frozen=True, slots=True)
class Look:
    """A file as it reads now: its size in bytes, SHA-256 in hex, and rows (None: it is no whole Parquet file)."""

    size: int
    digest: str
    rows: int | None


class Looking(Protocol):
    """Looks at a file. Raises OSError."""

    def __call__(self, path: str) -> Look: ...


def look_at(path: str) -> Look:
    """Reads all of it, in pieces; the rows are those its footer states. Raises OSError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gapless.effects.files import file_digest

    digest = file_digest(path)
    try:
        rows = pq.read_metadata(path).num_rows
    except (pa.ArrowException, ValueError, OSError):
        # The file was read a moment ago: Arrow says so, too, of a footer that makes no sense.
        rows = None
    return Look(os.stat(path).st_size, digest, rows)


def judge_files(store: Store, scope: str, look: Looking, checked: Checked) -> Iterator[Contradiction]:
    """Every file of a data set, and of candidates, which may come into one."""
    for row in store.promoted_files(scope):

        def at(code: str, detail: str, row: Record = row) -> Contradiction:
            where = {name: row[name] for name in ("lineage", "partition", "chain", "sequence", "path")}
            return Contradiction(code, detail, **where)

        found = _looked(row["path"], look, checked)
        if isinstance(found, OSError):
            yield at(*_unseen(found))
        elif found.digest != row["digest"]:
            yield at("file_differs", _difference(found, row))
        elif found.size != row["size"] or found.rows != row["rows"]:
            holds = f"it holds {found.size} bytes and {_rows(found)}"
            yield at(
                "file_rows_differ", f"{holds}; its record says {row['size']} bytes and {row['rows']} rows"
            )


def judge_dead_letter_files(evidence: Evidence, look: Looking, checked: Checked) -> Iterator[Contradiction]:
    """The files of dead letters, whose digest is part of their name. The store itself holds what is in them."""
    for row in evidence.dead_letter_files():
        path, letters = row["path"], row["letters"]
        named = _DIGEST_IN_NAME.search(path)
        found = _looked(path, look, checked)
        if isinstance(found, OSError):
            code, detail = _unseen(found)
            yield Contradiction(code, detail, path=path)
        elif named is not None and not found.digest.startswith(named[1]):
            yield Contradiction("file_differs", "its content is not what its name was made of", path=path)
        elif found.rows is None or found.rows < letters:
            detail = f"it holds {_rows(found)}; {letters} dead letters are said to be in it"
            yield Contradiction("file_rows_differ", detail, path=path)


def _looked(path: str, look: Looking, checked: Checked) -> Look | OSError:
    checked.files += 1
    try:
        found = look(path)
    except OSError as error:
        return error
    checked.bytes += found.size
    return found


def _unseen(error: OSError) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "file_missing", "it is not there: moved, deleted, or on another machine"
    return "file_unreadable", f"it cannot be read: {error.strerror or error}"


def _difference(found: Look, row: Record) -> str:
    if found.size < row["size"]:
        return f"it was cut: it holds {found.size} bytes of {row['size']}"
    if found.size > row["size"]:
        return f"it has grown: it holds {found.size} bytes; promoted were {row['size']}"
    named = _DIGEST_IN_NAME.search(row["path"])
    if named is not None and found.digest.startswith(named[1]):
        return "the record's digest is not that of the file, which is what its name was made of"
    return f"its content is another one: SHA-256 {found.digest}; promoted was {row['digest']}"


def _rows(found: Look) -> str:
    return "no rows that can be counted" if found.rows is None else f"{found.rows} rows"
