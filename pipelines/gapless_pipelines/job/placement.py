"""What a job names that lies on one machine, where its workers are on others: refused, since a promoted file would be lost."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from gapless_pipelines.findings import Finding, InvalidConfiguration, KeyPath
from gapless_pipelines.job.document import Document

_FOLDERS: tuple[KeyPath, ...] = (("effect", "path"), ("dead_letters", "path"))
_NAME_IT: Final = "name by shared_folder the folder that all workers share, where this one lies in it"
_URLS: tuple[KeyPath, ...] = (("store", "url"), ("delivery", "url"))


def refuse_unshared(
    document: Document, *, remote: bool, elsewhere: bool, shared_folder: str | None = None
) -> None:
    """Raises InvalidConfiguration for relative paths in a `remote` job file, which has no folder that they could lie in, and,
    where the workers are `elsewhere`, for folders outside `shared_folder`, which is the one that all workers share: given, or
    named by the job file itself."""
    findings = [*_relative(document)] if remote else []
    if elsewhere:
        findings += _unshared(document, shared_folder or _text(document, ("shared_folder",)))
    if findings:
        raise InvalidConfiguration(findings)


def unshared_findings(file: str, paths: Mapping[str, Path], shared_folder: str | None) -> Iterator[Finding]:
    """The same of a job that was loaded: `paths` are the folders it writes, by the key that names them."""
    for key, path in paths.items():
        if shared_folder is None or not _lies_in(str(path), shared_folder):
            yield Finding(file, 0, (key, "path"), *_lost(str(path), shared_folder))


def _relative(document: Document) -> Iterator[Finding]:
    for keys in _FOLDERS:
        path = _text(document, keys)
        if path is not None and not path.startswith("/"):
            what = f"`{path}` is relative, and a job file in object storage has no folder"
            yield document.finding(keys, what, "an absolute path")
    for keys in _URLS:
        url = _text(document, keys)
        if url is not None and url.startswith("sqlite:///") and not url.startswith("sqlite:////"):
            what = "is a relative SQLite file, and a job file in object storage has no folder"
            yield document.finding(keys, what, "an absolute path: sqlite:////FOLDER/FILE")


def _unshared(document: Document, shared: str | None) -> Iterator[Finding]:
    for keys in _FOLDERS:
        path = _text(document, keys)
        if path is None or (shared is not None and _lies_in(path, shared)):
            continue
        yield document.finding(keys, *_lost(path, shared))


def _lost(path: str, shared: str | None) -> tuple[str, str]:
    what = f"`{path}` would be a folder of each worker's own, and its files lost with it"
    return what, _NAME_IT if shared is None else f"a folder in {shared}, which the workers share"


def _lies_in(path: str, folder: str) -> bool:
    inner = PurePosixPath(path)
    return ".." not in inner.parts and PurePosixPath(folder) in (inner, *inner.parents)


def _text(document: Document, keys: KeyPath) -> str | None:
    value: object = document.value
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None
