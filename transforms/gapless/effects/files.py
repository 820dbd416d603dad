"""Files that appear whole or not at all: written under a temporary name in their own folder, synced, then renamed.

    PATH/<scope>/<partition>/<sequence>-<fencing token>-<digest>.parquet       published: durable, and never written again
    PATH/<scope>/<partition>/.<sequence>-<fencing token>-<random>.tmp          being written, or left by a crash

The digest of the content is in the name, so that twins of one run that saw other page boundaries never write over each
other. The scope is in the path, so that a sweep of one scope never looks at the files of another. Folders are named by
plain percent-encoding and never `key=value`: readers that look for Hive partitions would add columns of their own.
"""

import errno
import hashlib
import os
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from gapless.effects.protocol import Step, no_step
from gapless.errors import EffectError

_SAFE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_")
_LONGEST_NAME: Final = 120
_PUBLISHED: Final = re.compile(r"\d{9,}-(?P<fencing_token>\d+)-[0-9a-f]{32}\.parquet")
_UNFINISHED: Final = re.compile(r"\.\d{9,}-(?P<fencing_token>\d+)-[0-9a-f]{16}\.tmp")


def encoded_name(name: str) -> str:
    """A file name for any text, different for different texts. Never hidden, never one that data set readers pass over.

    >>> encoded_name("p0001"), encoded_name("eu/west"), encoded_name("_x"), encoded_name("")
    ('p0001', 'eu%2Fwest', '%5Fx', '%')
    """
    raw = name.encode("utf-8", "surrogatepass")
    parts = [chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in raw]
    if parts and parts[0] in "._":
        parts[0] = f"%{raw[0]:02X}"
    whole = "".join(parts)
    if len(whole) <= _LONGEST_NAME:
        return whole or "%"
    head = ""
    while len(head) + len(parts[0]) <= _LONGEST_NAME - 33:
        head += parts.pop(0)
    return f"{head}~{hashlib.sha256(raw).hexdigest()[:32]}"


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content as it reads now, in hex. Raises OSError."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def explained(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns what the operating system or Arrow says about a file into an EffectError that says what to do."""
    try:
        yield
    except OSError as error:
        raise EffectError(
            f"cannot write: {error.strerror or error}", where=str(path), remedy=_remedy(error)
        ) from error
    except pa.ArrowException as error:
        raise EffectError(f"cannot write: {str(error).splitlines()[0]}", where=str(path)) from error


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some space there; the run goes on from the last promoted page"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "let the user that runs gapless create files there, or set another `effect.path`"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return "the folder has vanished or is none: restore it with the files that were in it, or set another `effect.path`"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files (ulimit -n): each partition that is being read holds one"
    return "see what the operating system says above; the run goes on from the last promoted page"


class OutputFolder:
    """Where one scope's files go. Folders are made when first needed, once; one that vanishes later is an error.

    (Made anew, the folder of an unmounted disk would quietly fill the disk below it.)"""

    def __init__(self, root: str, scope: str) -> None:
        self.path: Final = Path(root, encoded_name(scope))
        self._rooted = False
        self._known: set[str] = set()

    def path_of(self, partition: str) -> Path:
        return self.path / encoded_name(partition)

    def of(self, partition: str) -> Path:
        """The partition's folder, there and durable. Raises EffectError."""
        folder = self.path_of(partition)
        if folder.name in self._known:
            return folder
        with explained(folder):
            if not self._rooted:
                _make_durable(self.path)
                self._rooted = True
            folder.mkdir(exist_ok=True)
            sync_folder(self.path)
        self._known.add(folder.name)
        return folder

    def forget(self, folder: Path) -> None:
        """It could not be used: see to it again the next time. The scope's own folder is made once only."""
        self._known.discard(folder.name)


def _make_durable(folder: Path) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.is_dir()]
    folder.mkdir(parents=True, exist_ok=True)
    # Another process may have made the last two a moment ago without having synced them yet: these are synced always.
    for parent in {folder.parent, folder.parent.parent, *(path.parent for path in missing)}:
        sync_folder(parent)


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Published:
    """A durable file: its absolute path, SHA-256 in hex, and size in bytes."""

    path: str
    digest: str
    size: int


class NewFile:
    """A file on its way: somebody writes it at `temporary` and closes it, then it is published or discarded."""

    def __init__(self, folder: Path, sequence: int, fencing_token: int, step: Step = no_step) -> None:
        self._stem = f"{sequence:09d}-{fencing_token}"
        self._folder = folder
        self._step = step
        self.temporary: Final = folder / f".{self._stem}-{secrets.token_hex(8)}.tmp"

    def publish(self) -> Published:
        """Sync, read back, rename, sync the folder: when this returns, a crash loses nothing. Raises OSError."""
        self._step("file_written")
        descriptor = os.open(self.temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        digest = file_digest(self.temporary)
        path = self._folder / f"{self._stem}-{digest[:32]}.parquet"
        self._step("before_rename")
        os.replace(self.temporary, path)
        self._step("after_rename")
        sync_folder(self._folder)
        self._step("file_durable")
        return Published(str(path), digest, size)

    def discard(self) -> None:
        """Leave nothing behind. Never raises: what cannot be removed now is swept later."""
        with suppress(OSError):
            os.unlink(self.temporary)


def sweep(
    root: str | os.PathLike[str],
    scope: str,
    *,
    listed: Collection[str],
    fencing_tokens: Mapping[str, int],
    dry_run: bool = False,
) -> list[str]:
    """Remove what no manifest names and no live run can still promote; the paths removed (or that would be).

    `listed`: every path that any promotion of the scope names, whatever its lineage. `fencing_tokens`: by partition, the
    lowest token of its chains that can still be promoted. Both must come from one snapshot of the store. A file or
    leftover below its partition's token can be promoted no more; one at or above it may belong to a live run and stays, as does
    everything of partitions that have no token here, and everything whose name this module did not write. Raises OSError.
    """
    # A digest in the name makes folder and name unique, wherever the tree is mounted and by whatever link it was reached.
    kept = {(path.parent.name.casefold(), path.name) for path in map(Path, listed)}
    lowest: dict[str, int] = {}
    for partition, fencing_token in fencing_tokens.items():
        # File systems that ignore case put "a" and "A" into one folder: then the lower token decides for both.
        name = encoded_name(partition).casefold()
        lowest[name] = min(fencing_token, lowest.get(name, fencing_token))
    removed = []
    for folder in _folders(Path(root, encoded_name(scope))):
        for file in sorted(folder.iterdir()):
            match = _PUBLISHED.fullmatch(file.name) or _UNFINISHED.fullmatch(file.name)
            if match is None or int(match["fencing_token"]) >= lowest.get(folder.name.casefold(), 0):
                continue
            if (folder.name.casefold(), file.name) not in kept:
                if not dry_run:
                    file.unlink(missing_ok=True)
                removed.append(str(file))
    return removed


def _folders(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if folder.is_dir()) if path.is_dir() else []
