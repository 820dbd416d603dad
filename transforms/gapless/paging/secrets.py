"""Secrets by reference: what a job file and a pickled source hold is where a secret stands, never the secret.

`{env: ORDERS_TOKEN}` or `{file: /run/secrets/orders}`. They are resolved on the worker, when a session is
opened; the value lives in a `Secret`, whose repr, text and pickle give nothing away."""

import os
import re
from pathlib import Path
from typing import Annotated, NoReturn

from pydantic import BeforeValidator, model_validator
from pydantic_core import PydanticCustomError

from gapless.errors import ConfigurationError
from gapless.paging.config_model import ConfigModel, NotBuilt

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN = "***"


class Secret:
    """A resolved secret. Only `reveal()` gives it out; it can be neither pickled nor copied into a message
    by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return _SHOWN

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a resolved secret is not to be pickled: pickle its reference and resolve it on the worker"
        )


class SecretReference(ConfigModel):
    """Where a secret stands: an environment variable's name or a file's path, as of the worker."""

    env: str | None = None
    file: str | None = None
    gcp_secret: NotBuilt = None

    @model_validator(mode="after")
    def _exactly_one(self) -> "SecretReference":
        if (self.env is None) == (self.file is None):
            raise PydanticCustomError(
                "secret", "names no one place; allowed: exactly one of {env: NAME} and {file: PATH}"
            )
        if self.env is not None and not _NAME.fullmatch(self.env):
            raise PydanticCustomError(
                "secret", "`env` holds no variable's name; allowed: letters, digits and _, no $"
            )
        return self

    def resolve(self) -> Secret:
        """Read it, now and here. A trailing line end of a file is not part of it. Raises
        ConfigurationError."""
        if self.env is not None:
            value = os.environ.get(self.env)
            if not value:
                raise ConfigurationError(
                    f"the environment variable {self.env} is not set, or empty",
                    where="a secret of the source refers to it",
                    remedy="set it where the workers run",
                )
            return Secret(value)
        return Secret(_read(Path(self.file or "")))


def _refuse_literal(value: object) -> object:
    if isinstance(value, str | int | float):
        raise PydanticCustomError(
            "secret", "a secret never stands in the file itself; allowed: {env: NAME} or {file: PATH}"
        )
    return value


SecretField = Annotated[SecretReference, BeforeValidator(_refuse_literal)]
"""Type of a key that holds a secret: a reference; the secret itself is refused without being repeated."""


def _read(path: Path) -> str:
    try:
        value = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigurationError(
            f"the secret's file {path} cannot be read: {reason}",
            where="a secret of the source refers to it",
            remedy="put it where the workers run, readable for them",
        ) from None
    if not value:
        raise ConfigurationError(
            f"the secret's file {path} is empty", where="a secret of the source refers to it"
        )
    return value
