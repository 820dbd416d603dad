"""The job file of a message log: strict like any other, checked whole, with the line of every finding."""

import importlib
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from gapless.delivery import LogRef, MessageLog, RangeEffect
from gapless.delivery.log_table import LogTable
from gapless.errors import ConfigurationError
from gapless.paging.config_model import ConfigModel, Duration, refuse_not_built
from gapless.paging.secrets import SecretField
from gapless_pipelines.findings import InvalidConfiguration
from gapless_pipelines.job.basics import StoreUrl, an_integer
from gapless_pipelines.job.document import Document
from gapless_pipelines.job.loading import read_document, refuse_other_version
from gapless_pipelines.job.store_url import located
from gapless_pipelines.job.validation import validate

_CALLABLE = r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"


def _checked_callable(named: str) -> str:
    if not re.fullmatch(_CALLABLE, named):
        raise PydanticCustomError(
            "callable", "names no callable; allowed: module:name, such as my_pkg:summarise"
        )
    return named


def _a_list(value: object) -> object:
    # A file's list is a list; the declaration keeps it as a tuple.
    return tuple(value) if isinstance(value, list) else value


class ColumnsConfig(ConfigModel):
    """The columns by their roles."""

    id: Annotated[str, Field(min_length=1)] = "id"
    shard: Annotated[str, Field(min_length=1)] = "shard"
    status: Annotated[str, Field(min_length=1)] = "status"


class TriggerConfig(ConfigModel):
    """When a worker acts: `rows` newly covered rows in a shard. `poll`: the wait between two rounds."""

    rows: Annotated[int, Field(ge=1)] = 20
    poll: Duration = 1.0


class PythonEffectConfig(ConfigModel):
    """`callable` gets (shard, start, end, rows): the rows with start < id <= end. Idempotent by that range."""

    type: Literal["python"]
    callable: Annotated[str, AfterValidator(_checked_callable)]


RangeEffectConfig = Annotated[PythonEffectConfig, refuse_not_built("sql", "http", under="type")]


class DeliveryConfig(ConfigModel):
    """A table of messages, how it is declared, and what is done with what is newly covered."""

    url: Annotated[StoreUrl, Field(description="sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE")]
    password: Annotated[
        SecretField | None, Field(description="of the database's user: {env: NAME} or {file: PATH}")
    ] = None
    table: Annotated[str, Field(min_length=1)]
    schema_: Annotated[
        str | None,
        Field(alias="schema", min_length=1, description="of the table; absent: as the database finds it"),
    ] = None
    columns: ColumnsConfig = ColumnsConfig()
    terminal: Annotated[
        tuple[str | int, ...],
        BeforeValidator(_a_list),
        Field(
            description="the statuses after which nothing more happens to a row; dead letters are",
        ),
    ]
    ids: Annotated[
        Literal["autoincrement", "identity", "serial"], Field(description="how ids are given out: checked")
    ]
    triggers: Annotated[
        tuple[str, ...],
        BeforeValidator(_a_list),
        Field(description="BEFORE INSERT triggers that leave the id alone: your word"),
    ] = ()
    trigger: TriggerConfig = TriggerConfig()
    effect: Annotated[
        RangeEffectConfig | None, Field(description="what `gapless delivery run` calls for each range")
    ] = None


class DeliveryJobConfig(ConfigModel):
    """A job file about a message log."""

    version: Annotated[Literal[1], BeforeValidator(an_integer), Field(description="of the job file's format")]
    delivery: Annotated[DeliveryConfig, Field(description="the message log")]


@dataclass(frozen=True, slots=True)
class DeliveryJob:
    """A checked job file. `url` is absolute and holds no password."""

    path: Path
    url: str
    config: DeliveryConfig
    document: Document

    def open(self, *, freshness: float = 0.0) -> MessageLog:
        """The log. Raises as `MessageLog`, and ConfigurationError for a password that is not where it should be."""
        return self.reference(freshness).open()

    def reference(self, freshness: float = 0.0) -> LogRef:
        """The log as it travels to workers, and is opened there: its password is looked up by them."""
        return LogRef(self.url, _declared(self.config), freshness, self.config.password)

    def effect(self) -> RangeEffect:
        """What the job names, imported from the current folder or what is installed. Raises InvalidConfiguration."""
        if self.config.effect is None:
            raise self._refusal(
                ("effect",),
                "is missing: nothing would be done with a range",
                "{type: python, callable: module:name}",
            )
        module, _, name = self.config.effect.callable.partition(":")
        place = ("effect", "callable")
        folder = os.getcwd()
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            found: Any = importlib.import_module(module)
        except Exception as error:
            what = f"module {module} cannot be imported: {type(error).__name__}: {error}"
            raise self._refusal(place, what, "a module in this folder, or an installed one") from error
        for part in name.split("."):
            if not hasattr(found, part):
                raise self._refusal(place, f"{module} has no {name}", "the name of a function in it")
            found = getattr(found, part)
        if not callable(found):
            raise self._refusal(
                place, f"{module}:{name} is no callable", "a function of (shard, start, end, rows)"
            )
        effect: RangeEffect = found
        return effect

    def _refusal(self, keys: tuple[str, ...], what: str, allowed: str) -> InvalidConfiguration:
        return InvalidConfiguration([self.document.finding(("delivery", *keys), what, allowed)])


def load_delivery_job(
    path: str | os.PathLike[str], environment: Mapping[str, str] | None = None
) -> DeliveryJob:
    """The job of a file. `environment` is what ${NAME} refers to; None: the process's own. Raises InvalidConfiguration with all
    findings. Opens nothing, and imports neither Beam nor Arrow."""
    return delivery_job_of(read_document(path, environment), Path(os.path.abspath(path)))


def delivery_job_of(document: Document, path: Path) -> DeliveryJob:
    """The job that a file's text is about, wherever that was read. Raises InvalidConfiguration with all findings."""
    refuse_other_version(document)
    if "delivery" not in document.value and "source" in document.value:
        what, allowed = (
            "is a job about the pages of a source",
            "a job with `delivery`; `gapless check` is for this one",
        )
        raise InvalidConfiguration([*document.findings, document.finding(("source",), what, allowed)])
    config, findings = validate(document, DeliveryJobConfig, document.value)
    findings += [finding for unset in document.unset.values() for finding in unset]
    findings += document.findings
    if config is None or findings:
        raise InvalidConfiguration(findings)
    delivery = config.delivery
    try:
        # What the declaration says of its own words: names, statuses, each once.
        _declared(delivery)
    except ConfigurationError as error:
        key = "terminal" if error.where == "terminal" else "columns"
        raise InvalidConfiguration([document.finding(("delivery", key), error.what, error.remedy)]) from None
    return DeliveryJob(path, located(delivery.url, Path.cwd()), delivery, document)


def _declared(delivery: DeliveryConfig) -> LogTable:
    return LogTable(
        table=delivery.table,
        terminal=delivery.terminal,
        ids=delivery.ids,
        schema=delivery.schema_,
        id=delivery.columns.id,
        shard=delivery.columns.shard,
        status=delivery.columns.status,
        triggers=delivery.triggers,
    )
