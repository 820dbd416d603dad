"""From a job file to a job: read, expand, check; every problem of the file in one error, and nothing written."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from gapless.errors import ConfigurationError
from gapless.paging.config_model import Found
from gapless.progress import domain_from
from gapless_pipelines.findings import Finding, InvalidConfiguration, KeyPath, closest
from gapless_pipelines.job.basics import BasicsConfig
from gapless_pipelines.job.checks import domain_findings, job_findings
from gapless_pipelines.job.document import Document, parse_document
from gapless_pipelines.job.job import Job
from gapless_pipelines.job.scope_store import ScopeStore
from gapless_pipelines.job.store_url import located
from gapless_pipelines.job.validation import ModelT, validate

MAX_BYTES = 16 * 1024 * 1024

_SUFFIXES = (".yaml", ".yml")
_JOB_KEYS = re.compile(r"^(?:scope|delivery)\s*:", re.MULTILINE)
_VERSION_KEY = re.compile(r"^version\s*:", re.MULTILINE)

Check: TypeAlias = Callable[[Mapping[str, Any], Callable[[KeyPath], bool]], Iterable[Found]]
"""From the values, and whether what stands at a path is known to be good, to what else is wrong."""


def load_job(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Job:
    """The job of a file. `environment` is what ${NAME} refers to; None: the process's own.

    Raises InvalidConfiguration with all findings. Imports Beam only where `pipeline_options` has Beam's own names,
    Arrow only where `schema` is given."""
    return job_of(read_document(path, environment), Path(os.path.abspath(path)))


def job_of(document: Document, path: Path) -> Job:
    """The job that a file's text is about, wherever that was read. Raises InvalidConfiguration with all findings."""
    from gapless_pipelines.job.models import (
        JobConfig,
    )  # the models of a source, which store_of gets by without

    _refuse_other_kinds(document)
    config, findings = _checked(document, JobConfig, document.value, job_findings)
    if config is None or findings:
        raise InvalidConfiguration(findings)
    folder, values = Path.cwd(), document.value
    store = _scope_store(config, values["domain"], folder)
    handoff = (values.get("membership") or {}).get("handoff")
    job = Job(path, folder, store, config, values["source"], handoff)
    try:
        job.source()
    except ConfigurationError as error:
        raise InvalidConfiguration([document.finding(("source",), error.what, error.remedy)]) from None
    return job


def store_of(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> ScopeStore:
    """Scope, domain and store of a job file, for commands that only read.

    Cheap, and content with less: the other keys may be wrong, and their variables unset. Imports no Beam, no Arrow, no HTTP
    client. Raises InvalidConfiguration."""
    document = read_document(path, environment)
    _refuse_other_kinds(document)
    basics = {key: document.value[key] for key in BasicsConfig.model_fields if key in document.value}
    config, findings = _checked(document, BasicsConfig, basics, lambda value, good: ())
    if config is None or findings:
        raise InvalidConfiguration(findings)
    return _scope_store(config, document.value["domain"], Path.cwd())


def find_job_file(folder: str | os.PathLike[str] = ".", *, key: str = "scope") -> Path:
    """The one job file of a folder with `key` at its top, or else the one of another kind: what it is read for says the rest.

    Raises ConfigurationError where there is none, or more than one."""
    files = _yaml_files(Path(folder))
    meant = re.compile(rf"^{key}\s*:", re.MULTILINE)
    found = [file for file in files if _looks_like_a_job(file, meant)]
    found = found or [file for file in files if _looks_like_a_job(file, _JOB_KEYS)]
    if len(found) == 1:
        return found[0]
    where = f"in {Path(folder).absolute()}"
    if not found:
        remedy = "name one, or begin with `gapless schema --example http`"
        raise ConfigurationError("there is no job file here", where=where, remedy=remedy)
    names = ", ".join(entry.name for entry in found)
    raise ConfigurationError(
        f"there are {len(found)} job files here", where=where, remedy=f"name one of {names}"
    )


def read_document(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Document:
    """A job file's text as values, not yet checked. Raises InvalidConfiguration."""
    return parse_document(_text(Path(path)), str(path), os.environ if environment is None else environment)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, _reason(error), _files_beside(path)) from None
    if len(data) > MAX_BYTES:
        raise _unreadable(path, f"is larger than {MAX_BYTES // 2**20} MiB", "a job file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        finding = Finding(str(path), line, (), "is not UTF-8 here", "text in UTF-8")
        raise InvalidConfiguration([finding]) from None


def _reason(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "is a folder"
    return f"cannot be read: {error.strerror}"


def _unreadable(path: Path, what: str, allowed: str) -> InvalidConfiguration:
    return InvalidConfiguration([Finding(str(path), 0, (), what, allowed)])


def _files_beside(path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    names = [entry.name for entry in _yaml_files(folder)]
    close = closest(path.name, names)
    if close:
        return f"did you mean `{folder / close}`?"
    return "the path of a job file" + (f", such as {folder / names[0]}" if names else "")


def _yaml_files(folder: Path) -> list[Path]:
    """In the order of their names; none where the folder cannot be looked into."""
    try:
        return sorted(entry for entry in folder.iterdir() if entry.suffix in _SUFFIXES and entry.is_file())
    except OSError:
        return []


def _looks_like_a_job(path: Path, keys: re.Pattern[str]) -> bool:
    try:
        text = _text(path)
    except InvalidConfiguration:
        return False
    return bool(_VERSION_KEY.search(text) and keys.search(text))


def _refuse_other_kinds(document: Document) -> None:
    """A version or a kind of job of which the other keys are not known here: one finding says it all."""
    refuse_other_version(document)
    if "delivery" in document.value:
        what = "is about a message log"
        allowed = "a job with a `source`; `gapless delivery` reads this one, in a file of its own"
        raise InvalidConfiguration([*document.findings, document.finding(("delivery",), what, allowed)])


def refuse_other_version(document: Document) -> None:
    """Raises InvalidConfiguration for a version of the format that is not known here."""
    version = document.value.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version != 1:
        what = "is none that this version of gapless knows"
        raise InvalidConfiguration([*document.findings, document.finding(("version",), what, "allowed: 1")])


def _checked(
    document: Document, model: type[ModelT], value: dict[str, Any], check: Check
) -> tuple[ModelT | None, list[Finding]]:
    """`value` as a model, and all findings: of the YAML, of each key, of unset variables, and of what `check` sees."""
    config, findings = validate(document, model, value)
    findings += [finding for keys, unset in document.unset.items() if keys[0] in value for finding in unset]
    findings += document.findings
    for found in domain_findings(value) if _is_good(("domain",), findings) else ():
        findings.append(document.finding(found.path, found.what, found.allowed))
    known = tuple(findings)
    for found in check(value, lambda keys: _is_good(keys, known)):
        findings.append(document.finding(found.path, found.what, found.allowed))
    return config, findings


def _is_good(keys: KeyPath, findings: Iterable[Finding]) -> bool:
    """Whether no finding is at these keys, above or below them."""
    return all(
        finding.keys[: len(keys)] != keys and keys[: len(finding.keys)] != finding.keys
        for finding in findings
    )


def _scope_store(config: BasicsConfig, domain: object, folder: Path) -> ScopeStore:
    url = located(config.store.url, folder)
    return ScopeStore(config.scope, domain_from(domain), url, config.store.password, config.store.connections)
