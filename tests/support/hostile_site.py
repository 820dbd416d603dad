"""One job against the hostile API: the API in a process of its own, the job file, and the oracle that judges what it leaves."""

import json
import subprocess
import sys
import urllib.request
from dataclasses import fields
from pathlib import Path
from typing import Any

import hostile_api
from hostile_universe import Knobs, job_source, universe
from truth_oracle import TruthOracle

SCOPE = "orders"


class HostileSite:
    """`events` and `pages` of its stats are what the API has served so far."""

    def __init__(self, folder: Path, store_url: str, knobs: Knobs, **job: Any) -> None:
        self.folder = folder
        self.store_url = store_url
        self.knobs = knobs
        self.log = folder / "log"
        self._api = subprocess.Popen(
            [sys.executable, hostile_api.__file__, *_options(knobs)], stdout=subprocess.PIPE, text=True
        )
        assert self._api.stdout is not None
        self.url = f"http://127.0.0.1:{self._api.stdout.readline().strip()}"
        self.job = folder / "job.yaml"
        self.oracle = self.new_oracle()
        self.write_job(**job)

    def write_job(
        self,
        target_rows: int = 60,
        retry: dict[str, Any] | None = None,
        workers: int | None = None,
        client: dict[str, Any] | None = None,
        **keys: Any,
    ) -> None:
        source = job_source(self.url, self.knobs)
        source["client"].update(client or {})  # type: ignore[attr-defined]
        document = {
            "version": 1,
            "scope": SCOPE,
            "domain": {"type": "integer"},
            "source": source,
            "effect": {"type": "parquet", "path": str(self.folder / "out"), "target_rows": target_rows},
            "shared_folder": str(self.folder),
            "store": {"url": self.store_url},
            "retry": retry or {"attempts": 5, "backoff": "20ms", "max": "100ms"},
            "pipeline_options": {"runner": "local", **({"direct_num_workers": workers} if workers else {})},
            **keys,
        }
        self.job.write_text(json.dumps(document, indent=1), encoding="utf-8")

    def new_oracle(self) -> TruthOracle:
        return TruthOracle(self.store_url, SCOPE, universe(self.knobs), repeats=self.repeats)

    @property
    def repeats(self) -> bool:
        """The source gives the last event of a page again on the next one."""
        return self.knobs.rate_duplicate > 0

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")[-4000:] if self.log.exists() else ""

    def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("stats"))
        return found

    def release(self) -> None:
        """The stalled partition answers from now on."""
        self.ask("release")

    def ask(self, what: str) -> bytes:
        with urllib.request.urlopen(f"{self.url}/{what}", timeout=30) as answer:
            body: bytes = answer.read()
        return body

    def close(self) -> None:
        self._api.kill()
        self._api.wait()
        if self._api.stdout is not None:
            self._api.stdout.close()


def _options(knobs: Knobs) -> list[str]:
    return [
        text
        for knob in fields(knobs)
        for text in (f"--{knob.name.replace('_', '-')}", str(getattr(knobs, knob.name)))
    ]
