"""What the `source:` block of a job file may say for `type: http`, key by key, and what this version does
not do yet."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from gapless.paging.config_model import (
    ConfigModel,
    Duration,
    NotBuilt,
    refuse_not_built,
)
from gapless.paging.http_values import (
    SECRET_PARAM,
    BaseUrl,
    FixedPath,
    HandoffTemplate,
    Headers,
    HttpStatus,
    JsonPathText,
    PathTemplate,
    PositionPath,
    Scalar,
    checked_template,
)
from gapless.paging.secrets import SecretField
from gapless.paging.template import Template

# --- auth, headers, client ---------------------------------------------------------------------------------


class NoAuth(ConfigModel):
    type: Literal["none"]


class BearerAuth(ConfigModel):
    """`Authorization: Bearer <token>`."""

    type: Literal["bearer"]
    token: SecretField


AuthConfig = Annotated[
    Annotated[NoAuth | BearerAuth, Field(discriminator="type")],
    refuse_not_built("basic", "api_key", "oauth2_client_credentials", under="type"),
]


class TimeoutConfig(ConfigModel):
    """`connect` and `read` in seconds: to reach the server, and of silence while an answer is awaited."""

    connect: Duration = 10.0
    read: Duration = 60.0


class RetryConfig(ConfigModel):
    """At most `attempts` requests for one answer, waiting `backoff`, twice that, and so on up to `max`
    seconds between.

    A longer Retry-After than `max` is not slept through: the partition is held until then, or,
    where that is more than an hour away, for a later run."""

    attempts: Annotated[int, Field(ge=1)] = 6
    backoff: Duration = 1.0
    max: Duration = 60.0
    on: list[HttpStatus] = Field(default=[429, 500, 502, 503, 504])


class ClientConfig(ConfigModel):
    timeout: TimeoutConfig = TimeoutConfig()
    retry: RetryConfig = RetryConfig()
    rate: NotBuilt = None
    tls: NotBuilt = None
    connections: Annotated[int, Field(ge=1)] = 8


# --- partitions --------------------------------------------------------------------------------------------


class BoundPaths(ConfigModel):
    """Where a bound stands in an answer: its position, and whether it is inclusive (a path, or the word
    itself)."""

    position: PositionPath
    inclusive: bool | JsonPathText


class KeyRangePaths(ConfigModel):
    """Where an item says which keys its partition serves, low <= key < high: text or integers, null for open."""

    low: JsonPathText
    high: JsonPathText


class HttpPartitions(ConfigModel):
    """The list of partitions as an endpoint gives it. `id` is a path in each item, `@` where the item
    itself is the id."""

    path: FixedPath
    items: JsonPathText
    id: JsonPathText
    routing_generation: JsonPathText | None = None
    list_complete: BoundPaths | None = None
    sealed: BoundPaths | None = None
    successors: JsonPathText | None = None
    parents: JsonPathText | None = None
    key_range: KeyRangePaths | None = None


class ListedPartitionConfig(ConfigModel):
    """An object of `partitions.list`: its `id`, and whatever fields the templates use."""

    model_config = ConfigModel.model_config | {"extra": "allow"}

    id: Annotated[str, Field(min_length=1)] | int


class PartitionsConfig(ConfigModel):
    """Exactly one of its keys."""

    list_: Annotated[
        list[Annotated[str, Field(min_length=1)] | int | ListedPartitionConfig] | None,
        Field(alias="list", min_length=1),
    ] = None
    http: HttpPartitions | None = None
    sql: NotBuilt = None

    @model_validator(mode="after")
    def _exactly_one(self) -> "PartitionsConfig":
        if (self.list_ is None) == (self.http is None):
            raise PydanticCustomError(
                "partitions", "names no one way to the partitions; allowed: exactly one of list, http"
            )
        ids = [str(one.id if isinstance(one, ListedPartitionConfig) else one) for one in self.list_ or ()]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        if twice:
            raise PydanticCustomError(
                "partitions", "`list` names {id} twice; allowed: each once", {"id": repr(twice[0])}
            )
        return self


# --- pages -------------------------------------------------------------------------------------------------


class HasMore(ConfigModel):
    """The chain ends where the boolean at this path is false."""

    has_more: JsonPathText


def _end_kind(value: object) -> str | None:
    if isinstance(value, dict | HasMore):
        return "has_more"
    return "word" if value in ("null", "empty", "same") else None


_END_ALLOWED = 'allowed: "null" (in quotes), empty, same, {has_more: PATH}'

EndConfig = Annotated[
    Annotated[Literal["null", "empty", "same"], Tag("word")] | Annotated[HasMore, Tag("has_more")],
    Discriminator(
        _end_kind,
        custom_error_type="kind",
        custom_error_message=f"no way to tell the end; {_END_ALLOWED}",
    ),
]


class CursorPaging(ConfigModel):
    """The next page is asked for with a cursor the answer holds, in its body (`from`) or in a header."""

    type: Literal["cursor"]
    from_: Annotated[JsonPathText | None, Field(alias="from")] = None
    header: str | None = None
    param: Annotated[str, Field(min_length=1)]
    json_: Annotated[NotBuilt, Field(alias="json")] = None
    first: Annotated[str | int | None, Field()] = None
    end: EndConfig

    @model_validator(mode="after")
    def _consistent(self) -> "CursorPaging":
        if (self.from_ is None) == (self.header is None):
            raise PydanticCustomError(
                "next", "the cursor has no one place; allowed: exactly one of from, header"
            )
        if self.header is not None and self.end == "null":
            raise PydanticCustomError(
                "next", "a header cannot be null; allowed as `end`: empty, same, {has_more: PATH}"
            )
        return self


NextConfig = Annotated[
    CursorPaging, refuse_not_built("next_url", "link_header", "page_number", "offset", under="type")
]


class RestartConfig(ConfigModel):
    """A chain restarts at its certified bound by sending the bound's position as `param`, in place of a
    cursor."""

    param: Annotated[str, Field(min_length=1)]


class ExpiredConfig(ConfigModel):
    """How the source tells that a page token is dead, and how a chain restarts then (absent: it is a gap)."""

    status: Annotated[list[Annotated[int, Field(ge=400, le=499)]], Field(min_length=1)]
    restart: RestartConfig | None = None


TailMode = Literal["token", "last_page", "since"]
"""How a stream asks again where the source has nothing further at present: with the token of the last page, for the last page
itself, or for what follows the certified bound."""


class PagesConfig(ConfigModel):
    path: PathTemplate
    method: Annotated[Literal["GET"], refuse_not_built("POST")] = "GET"
    json_: Annotated[NotBuilt, Field(alias="json")] = None
    params: dict[str, Scalar | list[Scalar]] = Field(default={})
    records: JsonPathText
    next: NextConfig
    expired: ExpiredConfig | None = None
    tail: TailMode | None = None
    errors: NotBuilt = None
    routing_generation: JsonPathText | None = None

    @model_validator(mode="after")
    def _params_are_fit(self) -> "PagesConfig":
        for name, value in self.params.items():
            if SECRET_PARAM.fullmatch(name):
                raise PydanticCustomError(
                    "secret", "`params.{name}` looks like a secret; allowed: `auth`", {"name": name}
                )
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    checked_template(text)
        restart = self.expired.restart.param if self.expired and self.expired.restart else None
        for taken in (self.next.param, restart):
            if taken in self.params:
                raise PydanticCustomError(
                    "params", "`params.{name}` is the paging's own; leave it out", {"name": taken}
                )
        return self


class EventConfig(ConfigModel):
    """Where each event's id and position stand, as paths in a record."""

    id: JsonPathText
    position: PositionPath


# --- certificate -------------------------------------------------------------------------------------------


class NoCertificate(ConfigModel):
    """`none: {}`: the source certifies nothing. Tokens and a vector, never a scalar frontier."""


class AssertConfig(ConfigModel):
    """What the operator takes for granted, and why; the frontier is labelled `asserted`."""

    closed_range: Literal[True] | None = None
    settled_after: NotBuilt = None
    reason: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _something_is_asserted(self) -> "AssertConfig":
        if self.closed_range is None:
            raise PydanticCustomError("assert", "asserts nothing; allowed: closed_range: true")
        return self


class CertificateConfig(ConfigModel):
    """Exactly one of its keys."""

    page: BoundPaths | None = None
    header: NotBuilt = None
    before: NotBuilt = None
    none: NoCertificate | None = None
    assert_: Annotated[AssertConfig | None, Field(alias="assert")] = None

    @model_validator(mode="after")
    def _exactly_one(self) -> "CertificateConfig":
        if [self.page, self.none, self.assert_].count(None) != 2:
            raise PydanticCustomError(
                "certificate", "says no one thing; allowed: exactly one of page, none, assert"
            )
        return self


# --- the whole ---------------------------------------------------------------------------------------------


class HandoffConfig(ConfigModel):
    """The source's handoff certificate between two routing generations: every event at or below `complete` whose partition
    differs is in `in_transit`."""

    path: HandoffTemplate
    from_: Annotated[JsonPathText, Field(alias="from")]
    to: JsonPathText
    complete: BoundPaths
    in_transit: JsonPathText


class RangeConfig(ConfigModel):
    """The `range:` block: start <= position < stop, each as the source writes a position; null is open."""

    start: object = None
    stop: object = None


class HttpSourceConfig(ConfigModel):
    """The `source:` block for `type: http`."""

    type: Literal["http"] = "http"
    base_url: BaseUrl
    auth: AuthConfig = NoAuth(type="none")
    headers: Headers = Field(default={})
    client: ClientConfig = ClientConfig()
    partitions: PartitionsConfig
    pages: PagesConfig
    event: EventConfig
    certificate: CertificateConfig

    @model_validator(mode="after")
    def _listed_fields_suffice(self) -> "HttpSourceConfig":
        needed = {"id", *self.partition_fields()}
        for one in self.partitions.list_ or ():
            there = {"id", *(one.model_extra or {})} if isinstance(one, ListedPartitionConfig) else {"id"}
            missing = sorted(needed - there)
            if missing:
                name = one.id if isinstance(one, ListedPartitionConfig) else one
                raise PydanticCustomError(
                    "template",
                    "a template needs partition.{field}, the listed partition {name} has only: {there}",
                    {"field": missing[0], "name": repr(name), "there": ", ".join(sorted(there))},
                )
        return self

    @model_validator(mode="after")
    def _partitions_are_asked_apart(self) -> "HttpSourceConfig":
        several = self.partitions.list_ is None or len(self.partitions.list_) > 1
        if several and not self.partition_fields():
            raise PydanticCustomError(
                "template",
                "no template names the partition, so that each would be asked for the same pages; "
                "allowed: {partition.id}, or another field of it, in pages.path or pages.params",
            )
        return self

    def templates(self) -> list[Template]:
        """Every template of the pages: the path first, then those in the parameters."""
        texts = [self.pages.path]
        for value in self.pages.params.values():
            texts += [
                text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)
            ]
        return [Template.parse(text) for text in texts]

    def partition_fields(self) -> set[str]:
        """The fields of a partition that the templates use."""
        return {name for template in self.templates() for name in template.partition_fields}
