"""The stream's entry point as a process on Prism, which lives in it: it reads and publishes until it is ended."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from orders_api import TOKEN, orders_api
from template_process import STRICT, TEMPLATES, readme_job

from gapless import Progress
from gapless.errors import StoreAbsent, UnknownScope


@pytest.mark.prism
def test_a_stream_on_prism_publishes_and_goes_on_until_it_is_ended(tmp_path: Path, prism: Path) -> None:
    # Without an end: where the range is proved, a stream ends by itself.
    job = (
        readme_job("orders.yaml")
        .replace("stop: 400", "stop: null")
        .replace('end: "null"}', 'end: "null"}\n    tail: last_page')
    )
    (tmp_path / "orders.yaml").write_text(job, encoding="utf-8")
    words = [f"--job_file={tmp_path / 'orders.yaml'}", "--runner=PrismRunner", f"--prism_location={prism}"]
    words += ["--environment_type=LOOPBACK", "--experiments=disable_prism_server_singleton"]
    with orders_api() as url, open(tmp_path / "out.json", "w+") as out, open(tmp_path / "log", "w+") as log:
        process = subprocess.Popen(
            [sys.executable, *STRICT, str(TEMPLATES / "stream" / "main.py"), *words],
            cwd=tmp_path,
            env={**os.environ, "ORDERS_TOKEN": TOKEN, "ORDERS_URL": url},
            stdout=out,
            stderr=log,
            start_new_session=True,
        )
        try:
            seen = complete_through_all(tmp_path, process, time.monotonic() + 100)
            assert seen, (tmp_path / "log").read_text()[-3000:]
            assert process.poll() is None
            assert json.loads((tmp_path / "out.json").read_text())["state"] == "submitted"
        finally:
            # Prism is a child of it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def complete_through_all(folder: Path, process: "subprocess.Popen[bytes]", deadline: float) -> bool:
    """Whether the frontier covers all orders before the deadline, while the process lives."""
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with Progress(f"sqlite:///{folder / 'progress.db'}") as progress:
                claim = progress.scope("orders").frontier
                if claim is not None and (claim.position, claim.inclusive) == ("400", False):
                    return True
        except (StoreAbsent, UnknownScope):
            pass
        time.sleep(0.1)
    return False
