"""Which scope of which store a command is about: by a job file, by --store and --scope, or by the one job file here."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gapless.clock import Clock
from gapless.errors import ConfigurationError

if TYPE_CHECKING:
    from gapless.reading import ScopeProgress
    from gapless.store_ref import StoreRef


@dataclass(frozen=True, slots=True)
class Meant:
    """`scope` None: the only one of the store."""

    store: "StoreRef"
    scope: str | None


def meant(job: Path | None, store: str | None, scope: str | None) -> Meant:
    """Raises ConfigurationError where it is said twice, or not at all."""
    if job is not None and (store is not None or scope is not None):
        raise ConfigurationError(
            "a job file and --store or --scope: what is meant is said twice",
            where=str(job),
            remedy="name the job file, or --store with --scope",
        )
    if store is not None:
        from gapless.store_ref import store_ref

        return Meant(store_ref(store), scope)
    from gapless_pipelines.job import store_of

    path = job_file(job)
    named = store_of(path)
    if scope is not None and scope != named.scope:
        raise ConfigurationError(
            f"the job file here is about scope {named.scope}, not {scope}",
            where=str(path),
            remedy="name another job file, or --store URL with --scope",
        )
    return Meant(named.ref(), named.scope)


def job_file(job: Path | None) -> Path:
    """The job file that was named, or the one of this folder. Raises ConfigurationError."""
    if job is not None:
        return job
    from gapless_pipelines.job import find_job_file

    return find_job_file()


@contextmanager
def opened(
    job: Path | None, store: str | None, scope: str | None, clock: Clock | None = None
) -> Iterator["ScopeProgress"]:
    """The scope that is meant, opened for reading. Raises ConfigurationError and StoreError."""
    from gapless.reading import Progress

    what = meant(job, store, scope)
    with Progress(what.store, clock) as progress:
        yield progress.scope(what.scope or only_scope(progress.scopes(), what.store.url))


def only_scope(scopes: list[str], store: str) -> str:
    """Raises ConfigurationError where there is none, or more than one."""
    if len(scopes) == 1:
        return scopes[0]
    if not scopes:
        raise ConfigurationError(
            "the store holds no scope yet", where=store, remedy="`gapless backfill JOB` begins one"
        )
    raise ConfigurationError(
        f"the store holds {len(scopes)} scopes",
        where=store,
        remedy=f"--scope with one of {', '.join(scopes)}",
    )


def require_reason(reason: str, what: str, command: str) -> None:
    """Raises ConfigurationError where an operator's word comes without one; the dots of a copied command are none."""
    if not any(char.isalnum() for char in reason):
        raise ConfigurationError(
            f"{what} needs a reason",
            where=f"in `{command}`",
            remedy='--reason "..." in words that will mean something in a year; it is kept and shown',
        )
