"""A job: what a job file says, checked, with everything in it that a run is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gapless.paging.source import Range
from gapless.progress import Domain
from gapless_pipelines.job.positions import position_of
from gapless_pipelines.job.scope_store import ScopeStore

if TYPE_CHECKING:
    from gapless.effects.dead_letters import ParquetDeadLetters
    from gapless.effects.parquet import ParquetEffect
    from gapless.paging.http import HttpSource
    from gapless.polling import Polling
    from gapless.settling.retrying import RetryPolicy
    from gapless.store.records import MembershipPolicy
    from gapless_pipelines.job.models import JobConfig
    from gapless_pipelines.options import EngineOptions


@dataclass(frozen=True, slots=True)
class Job:
    """`path` is the file's absolute path. Everything is a description: nothing is opened, no secret is read here.

    Relative paths lie in `folder`, the current one when the job was loaded. `source_keys` is the file's `source:` as
    it stands there, `handoff` its `membership.handoff:`."""

    path: Path
    folder: Path
    store: ScopeStore
    config: JobConfig
    source_keys: Mapping[str, Any]
    handoff: Mapping[str, Any] | None = None

    @property
    def scope(self) -> str:
        return self.store.scope

    @property
    def domain(self) -> Domain:
        return self.store.domain

    def range(self) -> Range:
        """start <= position < stop; None is open."""
        ends = (self.config.range.start, self.config.range.stop)
        return Range(*(None if end is None else position_of(self.domain, end) for end in ends))

    def source(self) -> HttpSource:
        """Raises ConfigurationError where its parts do not fit each other."""
        from gapless.paging.http import HttpSource

        return HttpSource(
            scope=self.scope,
            domain=self.domain,
            range=self.range(),
            handoff=self.handoff,
            **self.source_keys,
        )

    def membership(self) -> MembershipPolicy:
        """What follows a list of partitions that has changed."""
        from gapless.store.records import MembershipPolicy

        membership = self.config.membership
        return MembershipPolicy(
            on_change=membership.on_change,
            moves=None if membership.moves is None else membership.moves.reason,
        )

    def effect(self) -> ParquetEffect:
        from gapless.effects.parquet import ParquetEffect

        effect = self.config.effect
        return ParquetEffect(
            str(self.folder / effect.path),
            effect.target_rows,
            effect.compression,
            self.config.schema_,
            self.config.on_drift,
        )

    def dead_letters(self) -> ParquetDeadLetters | None:
        """Where events go that keep failing; None: they hold their partition."""
        from gapless.effects.dead_letters import ParquetDeadLetters

        dead_letters = self.config.dead_letters
        if dead_letters is None:
            return None
        return ParquetDeadLetters(str(self.folder / dead_letters.path), dead_letters.compression)

    def retry(self) -> RetryPolicy:
        """How often the effect is tried on an event."""
        from gapless.settling.retrying import RetryPolicy

        retry = self.config.retry
        return RetryPolicy(retry.attempts, retry.backoff, retry.max)

    def polling(self) -> Polling:
        """How a stream polls."""
        from gapless.polling import Polling

        stream = self.config.stream
        return Polling(every=stream.poll, longest=stream.longest, look_every=stream.look)

    def engine(
        self, arguments: Sequence[str] = (), *, launching: bool = False, shared_folder: str | None = None
    ) -> EngineOptions:
        """What runs the job: by `pipeline_options`, and by `arguments` as they stand after `--` on a command line.

        `launching`: it is about to be started, so that nothing may be missing any more. `shared_folder` stands for the file's
        own. Raises InvalidConfiguration, also where files would be written on machines of which each has its own folders."""
        from gapless_pipelines.findings import InvalidConfiguration
        from gapless_pipelines.job.placement import unshared_findings
        from gapless_pipelines.options import engine_options, workers_elsewhere

        engine = engine_options(
            self.config.pipeline_options, arguments, store_url=self.store.url, launching=launching
        )
        if workers_elsewhere(engine):
            shared = shared_folder or self.config.shared_folder
            findings = [*unshared_findings(str(self.path), self._folders(), shared)]
            if findings:
                raise InvalidConfiguration(findings)
        return engine

    def _folders(self) -> dict[str, Path]:
        """The folders that the job writes, by the key that names them."""
        found = {"effect": self.folder / self.config.effect.path}
        if self.config.dead_letters is not None:
            found["dead_letters"] = self.folder / self.config.dead_letters.path
        return found
