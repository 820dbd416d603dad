"""A job that is run on one engine after another, killed and run again, and judged by what is durable."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from delivered_oracle import DeliveredOracle
from durable_claims import Instant
from engine_pipeline import IN_PIPELINE, IN_PLACE
from engine_process import Submitter, Work
from engine_steps import DIE_AT
from hostile_site import SCOPE, HostileSite
from hostile_universe import END, HOSTILE, Knobs, universe
from truth_oracle import TruthOracle
from worker_pool import WorkerPool

from engines import Engine
from gapless.polling import Polling

ENDS_WITHIN = 100.0
HANGS_AFTER = 10.0
"""Seconds after a worker was killed. Beam says within two that the job has failed, or it never does."""

RUNS_AGAIN = 4

LIVELY = {**HOSTILE, "rate_expired": 0.0}
"""Everything an API may do to its reader but letting tokens die, which may leave a chain without a place to start from."""
GROWING = Knobs(seed=8, events=160, page=20, visible=60, **LIVELY)
"""Of each partition more than half the events come later."""


class EngineSite(HostileSite):
    """`way` is how the job settles. `prism` is its binary."""

    def __init__(
        self, folder: Path, store_url: str, way: str, knobs: Knobs, prism: Path | None, **job: Any
    ) -> None:
        self.way = way
        self.prism = prism
        self._runs: list[EngineRun] = []
        self.deliveries = folder / "deliveries"
        self.deliveries.mkdir()
        super().__init__(folder, store_url, knobs, **job)

    def new_oracle(self) -> TruthOracle:
        if self.way == IN_PLACE:
            return super().new_oracle()
        return DeliveredOracle(
            url=self.store_url, scope=SCOPE, universe=universe(self.knobs), deliveries=self.deliveries
        )

    def start(self, engine: Engine, polling: Polling | None = None, **environment: str) -> "EngineRun":
        """Submit it; with `polling` a stream, which does not end by itself."""
        run = EngineRun(self, engine, len(self._runs), polling, environment)
        self._runs.append(run)
        return run

    def run(self, engine: Engine) -> None:
        """To the end, which the engine calls a success."""
        run = self.start(engine)
        status = run.ended()
        assert status == 0, f"{engine} ended with {status}:\n{self.said()}"
        assert run.submitter.ran_on == engine.runner
        run.close()

    def run_and_die(self, engine: Engine, step: str, nth: int) -> None:
        """Whoever reads kills itself at the n-th `step`: a worker, or the submitter where it is the worker."""
        run = self.start_and_die(engine, step, nth)
        run.over_after_a_kill()
        run.close()

    def start_and_die(
        self, engine: Engine, step: str, nth: int, polling: Polling | None = None
    ) -> "EngineRun":
        """The same, and not waited for."""
        marker = self.folder / f"died-{len(self._runs)}"
        run = self.start(engine, polling, **{DIE_AT: f"{step}:{nth}:{marker}"})
        run.marker = marker
        return run

    def wait_until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + ENDS_WITHIN
        while not holds():
            assert time.monotonic() < end, f"it does not come about:\n{self.said()}"
            left = [run for run in self._runs if run.submitter.ended(0) is None]
            assert left or not self._runs, (
                f"it does not come about, and nobody is at work any more:\n{self.said()}"
            )
            time.sleep(0.05)

    def belongs_to(self, number: int) -> bool:
        """Every chain is the run's of that number."""
        now = self.oracle.look()
        return now is not None and {chain.fencing_token for chain in now.chains.values()} == {number}

    def reached(self, events: int) -> bool:
        """The frontier has passed the first so many events of each partition; with all of them, its chains have ended."""
        now = self.oracle.look()
        if now is None or now.frontier is None:
            return False
        if events >= self.knobs.events:
            return now.frontier.position == END
        return now.frontier.position >= min(
            one[events - 1]["position"] for one in self.oracle.universe.values()
        )

    def judge_the_end(self, engine: Engine | None = None) -> Instant:
        """Everything is durable, and published.

        Settled in the pipeline, it may need `engine` again: Prism 2.77 gives away the rest of a bundle that is slow for 0.2 s,
        also between two elements of one key, and whoever processes the rest does not see the state that the first part leaves.
        Pages that are forgotten so stay open, are said to, and are read by the next run."""
        for _ in range(RUNS_AGAIN):
            now = self.oracle.finish()
            if now.frontier is not None and now.frontier.position == END:
                return now
            may_forget = engine is not None and engine.prism and self.way == IN_PIPELINE
            assert may_forget, f"{now.frontier}, {now.chains}\n{self.said()}"
            assert engine is not None
            self.run(engine)
        raise AssertionError(f"it is never complete:\n{self.said()}")

    def close(self) -> None:
        for run in self._runs:
            run.close()
        super().close()


class EngineRun:
    """One submission, with its pool of workers where the engine needs one."""

    def __init__(
        self,
        site: EngineSite,
        engine: Engine,
        number: int,
        polling: Polling | None,
        environment: Mapping[str, str],
    ) -> None:
        folder = site.folder / f"run{number}"
        home = folder / "home"
        home.mkdir(parents=True)
        self._site = site
        self.marker = folder / "nobody dies"
        self.pool = WorkerPool(folder, environment) if engine.apart else None
        if self.pool is not None:
            self.pool.wait_until_it_listens()
        self.submitter = Submitter(
            Work(
                job=str(site.job),
                log=str(site.log),
                way=site.way,
                deliveries=str(site.deliveries),
                flags=engine.flags(site.prism, self.pool.port if self.pool else None),
                environment={**engine.environment(home, site.prism), **environment},
                ran_on=str(folder / "ran_on"),
                polling=polling,
            )
        )

    def ended(self) -> int | None:
        """The submitter's exit code; None where it does not end."""
        return self.submitter.ended(ENDS_WITHIN)

    def over_after_a_kill(self) -> None:
        """Wait until a worker was killed, and then for what the engine makes of it: the job fails, or hangs and is ended here."""
        end = time.monotonic() + ENDS_WITHIN
        while not self.marker.exists():
            assert time.monotonic() < end, f"nobody was killed:\n{self._site.said()}"
            if self.submitter.ended(0.05) is not None:
                assert self.marker.exists(), f"the job ended before anybody was killed:\n{self._site.said()}"
        status = self.submitter.ended(HANGS_AFTER)
        assert status != 0, "a job whose worker was killed has succeeded"

    def at_work(self) -> None:
        """Wait until whoever is to read is there; that it has begun is not said."""
        end = time.monotonic() + ENDS_WITHIN
        while self.pool is not None and not self.pool.workers() and self.submitter.ended(0.02) is None:
            assert time.monotonic() < end, f"no worker is started:\n{self._site.said()}"

    def kill_somebody_after(self, seconds: float) -> bool:
        """SIGKILL to the worker, to the submitting process where that is the worker, whatever it does; False where the job has
        ended by then. What is left of the run is ended."""
        if self.submitter.ended(seconds) is not None:
            self.close()
            return False
        if self.pool is not None and self.pool.workers():
            os.kill(self.pool.workers()[-1], signal.SIGKILL)
            self.submitter.ended(HANGS_AFTER)
        self.close()
        return True

    def close(self) -> None:
        self.submitter.kill_group()
        if self.pool is not None:
            self.pool.close()
