"""Promoted files as they lie there now: content, size and rows against the record that lists each."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gapless.audit.contradiction import Checked, Contradiction
from gapless.store.evidence import Evidence, Record
from gapless.store.store import Store

_PUBLISHED: Final = re.compile(r"\d{9,}-\d+-[0-9a-f]{32}\.parquet")
_DIGEST_IN_NAME: Final = re.compile(r"-([0-9a-f]{32})\.parquet$")


@dataclass(frozen=True, slots=True)
class Look:
    """A file as it reads now: its size in bytes, SHA-256 in hex, and rows (None: it is no whole Parquet file).

    `partitions`: the first and the last of the names that its rows give their partition; None where it does not tell."""

    size: int
    digest: str
    rows: int | None
    partitions: tuple[str, str] | None = None


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
        footer = pq.read_metadata(path)
    except (pa.ArrowException, ValueError, OSError):
        # The file was read a moment ago: Arrow says so, too, of a footer that makes no sense.
        return Look(os.stat(path).st_size, digest, None)
    return Look(os.stat(path).st_size, digest, footer.num_rows, _partitions(footer))


def _partitions(footer: Any) -> tuple[str, str] | None:
    """From the statistics alone: nothing of the rows is read."""
    from gapless.effects.frozen_schema import PARTITION

    names: list[str] = []
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        for column in range(group.num_columns):
            chunk = group.column(column)
            if chunk.path_in_schema != PARTITION:
                continue
            found = chunk.statistics
            if found is None or not found.has_min_max or not isinstance(found.min, str):
                return None
            names = [min([found.min, *names[:1]]), max([found.max, *names[1:]])]
    return (names[0], names[1]) if names else None


def other_folder(path: str, scope: str, partition: str) -> str | None:
    """The folder of a promoted file that lies where files of the scope go, and not where the partition's do; else None.

    >>> name = "000000007-3-0123456789abcdef0123456789abcdef.parquet"
    >>> other_folder(f"/out/orders/eu%2Fwest/{name}", "orders", "eu/west")
    >>> other_folder(f"/out/orders/b/{name}", "orders", "a")
    'b'
    >>> other_folder(f"/elsewhere/b/{name}", "orders", "a")
    """
    folder, name = os.path.split(path)
    if _PUBLISHED.fullmatch(name) is None:
        return None
    from gapless.effects.files import encoded_name

    above, last = os.path.split(folder)
    ours = os.path.basename(above) == encoded_name(scope)
    return last if ours and last != encoded_name(partition) else None


def judge_files(store: Store, scope: str, look: Looking, checked: Checked) -> Iterator[Contradiction]:
    """Every file of a data set, and of candidates, which may come into one. A chain by another name than its rows is told of
    once."""
    misnamed = None
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
        elif found.partitions not in (None, (row["partition"],) * 2) and row["chain"] != misnamed:
            misnamed = row["chain"]
            yield at(
                "checkpoint_differs", f"it is partition {row['partition']!r}; {_whose(*found.partitions)}"
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


def _whose(first: str, last: str) -> str:
    if first == last:
        return f"its rows are of {first!r}"
    return f"its rows are of partitions from {first!r} to {last!r}"


def _rows(found: Look) -> str:
    return "no rows that can be counted" if found.rows is None else f"{found.rows} rows"
