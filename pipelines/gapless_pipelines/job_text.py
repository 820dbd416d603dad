"""A job file's text, wherever Beam's file systems reach: object storage, or this machine. Imports Beam."""

from collections.abc import Mapping

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from gapless_pipelines.findings import Finding, InvalidConfiguration
from gapless_pipelines.job.document import Document, parse_document
from gapless_pipelines.job.loading import MAX_BYTES


def read_job_document(path: str, environment: Mapping[str, str]) -> Document:
    """The file's values, not yet checked. Raises InvalidConfiguration where it cannot be read, or is no YAML."""
    try:
        # As it stands there: a name that ends in .gz is not taken for a compressed file.
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            data: bytes = file.read(MAX_BYTES + 1)
    except Exception as error:
        # Each file system has exceptions of its own.
        raise _refusal(path, f"cannot be read: {_first_line(error)}", "a job file, readable here") from error
    if len(data) > MAX_BYTES:
        raise _refusal(path, f"is larger than {MAX_BYTES // 2**20} MiB", "a job file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _refusal(path, "is not UTF-8", "text in UTF-8") from None
    return parse_document(text, path, environment)


def is_remote(path: str) -> bool:
    """Whether it names no file of this machine."""
    return "://" in path


def _refusal(path: str, what: str, allowed: str) -> InvalidConfiguration:
    return InvalidConfiguration([Finding(path, 0, (), what, allowed)])


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
