"""What a job file may say, key by key: pydantic models, from which its JSON Schema is made too."""

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from gapless.paging.config_model import ConfigModel, Duration, NotBuilt, not_built, refuse_not_built
from gapless.paging.http_config import HandoffConfig, HttpSourceConfig, RangeConfig
from gapless_pipelines.job.basics import BasicsConfig


def _checked_folder(path: str) -> str:
    if "://" in path:
        raise not_built("a folder at a URL")
    if path.startswith("~"):
        raise PydanticCustomError("path", "`~` is not followed here; the path written out, or ${HOME}")
    if "\0" in path:
        raise PydanticCustomError("path", "holds a null character; a local folder")
    return path


Folder = Annotated[str, Field(min_length=1), AfterValidator(_checked_folder)]
"""A local folder, absolute or relative to the current one."""


def _checked_shared_folder(path: str) -> str:
    if not path.startswith("/"):
        raise PydanticCustomError("path", "is relative; an absolute path, the same on every worker")
    return path


SharedFolder = Annotated[Folder, AfterValidator(_checked_shared_folder)]
"""A folder that all workers see at the same path."""

Compression = Literal["zstd", "snappy", "gzip", "lz4", "none"]


SourceConfig = Annotated[HttpSourceConfig, refuse_not_built("sql", "files", under="type")]


class ParquetEffectConfig(ConfigModel):
    """Parquet files under `path`; one is closed at `target_rows` events."""

    replaceable: ClassVar[bool] = True

    type: Literal["parquet"]
    path: Folder
    target_rows: Annotated[int, Field(ge=1)] = 1_000_000
    compression: Compression = "zstd"


EffectConfig = Annotated[ParquetEffectConfig, refuse_not_built("sql", "python", under="type")]


class ParquetDeadLettersConfig(ConfigModel):
    """Events that keep failing are kept in Parquet files under `path` and no longer hold their partition."""

    type: Literal["parquet"]
    path: Folder
    compression: Compression = "zstd"


class EffectRetryConfig(ConfigModel):
    """How often a failing event is tried in all, and the wait between: `backoff`, twice that, up to `max`."""

    attempts: Annotated[int, Field(ge=1)] = 5
    backoff: Duration = 1.0
    max: Duration = 60.0


class MovesConfig(ConfigModel):
    """The source's own promise about events that change their partition, and where it gives it."""

    guarantee: Literal["never_behind_certified"]
    reason: Annotated[str, Field(min_length=1)]


class MembershipConfig(ConfigModel):
    """What happens when the source's list of partitions or its routing changes: the epoch holds until its cutover."""

    on_change: Literal["cutover", "hold"] = "cutover"
    moves: MovesConfig | None = None
    handoff: HandoffConfig | None = None

    @model_validator(mode="after")
    def _one_proof(self) -> "MembershipConfig":
        if self.moves is not None and self.handoff is not None:
            raise PydanticCustomError(
                "membership", "has two proofs of changed routing; allowed: one of moves, handoff"
            )
        return self


class StreamConfig(ConfigModel):
    """How a stream asks partitions that have nothing further: `poll` later, twice that, and so on up to `longest` while nothing
    comes; and how often it looks at the list of partitions."""

    poll: Duration = 1.0
    longest: Duration = 10.0
    look: Duration = 30.0

    @model_validator(mode="after")
    def _longest_is_longer(self) -> "StreamConfig":
        if self.longest < self.poll:
            raise PydanticCustomError(
                "stream", "`longest` is shorter than `poll`; allowed: the same, or a longer time"
            )
        return self


class JobConfig(BasicsConfig):
    """A job file: what gapless reads, applies durably, and proves complete."""

    source: Annotated[SourceConfig, Field(description="where the partitions and their pages are read")]
    range: Annotated[RangeConfig, Field(description="the positions the scope is about")] = RangeConfig()
    schema_: Annotated[
        dict[str, str] | None,
        Field(alias="schema", description="column -> type, for columns that are not to be inferred"),
    ] = None
    on_drift: Annotated[
        Literal["rest", "hold"],
        Field(description="what does not fit the schema goes to the column _rest, or holds its partition"),
    ] = "rest"
    effect: Annotated[EffectConfig, Field(description="what is done with every event, durably")]
    dead_letters: Annotated[
        ParquetDeadLettersConfig | None,
        Field(description="where events go that keep failing; absent: they hold their partition"),
    ] = None
    retry: Annotated[EffectRetryConfig, Field(description="of the effect")] = EffectRetryConfig()
    membership: Annotated[
        MembershipConfig, Field(description="what happens when the list of partitions changes")
    ] = MembershipConfig()
    stream: Annotated[StreamConfig, Field(description="how a stream polls")] = StreamConfig()
    pipeline_options: Annotated[
        dict[str, JsonValue],
        Field(default_factory=dict, description="runner, and Apache Beam's pipeline options by name"),
    ]
    shared_folder: Annotated[
        SharedFolder | None,
        Field(
            description="a folder that all workers share, as a mount is: asked where they run on other machines"
        ),
    ] = None
    split: NotBuilt = None
