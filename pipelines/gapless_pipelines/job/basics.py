"""The part of a job file that names a scope and its store: all that commands need which only read."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from gapless.paging.config_model import ConfigModel
from gapless.paging.secrets import SecretField
from gapless_pipelines.job.domain_config import DomainConfig
from gapless_pipelines.job.store_url import PATTERN, checked_store_url


def an_integer(value: object) -> object:
    """For the version of a format."""
    if type(value) is not int:
        # Python takes 1.0 and True for 1; a file that says so means something else.
        raise PydanticCustomError("version", "no version of the format; allowed: 1")
    return value


def _checked_scope(scope: str) -> str:
    if not re.fullmatch(_SCOPE, scope):
        allowed = "letters, digits, `_`, `.` and `-`, at most 200, the first neither `.` nor `-`"
        raise PydanticCustomError("scope", "no name for a scope; {allowed}", {"allowed": allowed})
    return scope


_SCOPE = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}"
Scope = Annotated[
    str, AfterValidator(_checked_scope), WithJsonSchema({"type": "string", "pattern": f"^{_SCOPE}$"})
]


StoreUrl = Annotated[
    str, AfterValidator(checked_store_url), WithJsonSchema({"type": "string", "pattern": PATTERN})
]


class StoreConfig(ConfigModel):
    """Where progress is kept, durably."""

    url: Annotated[StoreUrl, Field(description="sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE")]
    password: Annotated[
        SecretField | None, Field(description="of the database's user: {env: NAME} or {file: PATH}")
    ] = None
    connections: Annotated[
        int, Field(ge=1, description="how many each process has to a PostgreSQL store at most")
    ] = 4


class BasicsConfig(ConfigModel):
    """What commands need that only read: which scope, in which domain, in which store."""

    version: Annotated[Literal[1], BeforeValidator(an_integer), Field(description="of the job file's format")]
    scope: Annotated[Scope, Field(description="the name of what is read; its progress is kept under it")]
    domain: Annotated[DomainConfig, Field(description="what positions are")]
    store: Annotated[StoreConfig, Field(description="where progress is kept")]
