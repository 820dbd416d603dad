"""From the words of a job file to what an HTTP source is made of, with errors that name the key."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from gapless.errors import ConfigurationError, PositionError
from gapless.paging.config_model import findings
from gapless.paging.http_config import RangeConfig
from gapless.paging.source import Range
from gapless.progress import Domain, Position

ModelT = TypeVar("ModelT", bound=BaseModel)


def validated(model: type[ModelT], data: Mapping[str, Any], where: str) -> ModelT:
    """`data` as a model. Raises ConfigurationError that names the keys."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        raise _configuration_error(error, model, data, where) from None


def range_of(domain: Domain, data: Mapping[str, object] | None, where: str) -> Range:
    """The `range:` block in the scope's domain. Raises ConfigurationError."""
    try:
        config = RangeConfig.model_validate(dict(data or {}))
    except ValidationError as error:
        raise _configuration_error(error, RangeConfig, data, where) from None
    ends: dict[str, Position | None] = {}
    for name, raw in (("start", config.start), ("stop", config.stop)):
        try:
            ends[name] = None if raw is None else domain.parse(raw)
        except PositionError as error:
            raise ConfigurationError(
                f"range.{name}: {error.what}", where=where, remedy="write it as the source writes positions"
            ) from None
    return Range(ends["start"], ends["stop"])


def _configuration_error(
    error: ValidationError, model: type[BaseModel], data: object, where: str
) -> ConfigurationError:
    first, *others = map(str, findings(error, model, data))
    return ConfigurationError(first, where=where, remedy="; also: ".join(["", *others]).removeprefix("; "))
