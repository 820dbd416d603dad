"""`gapless stream JOB -- --runner=PrismRunner`: one streaming pipeline, from the command line to the durable rows."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from growing_api import GrowingApi
from stream_site import StreamSite

from engines import BY_NAME
from gapless.progress import Bound


@pytest.mark.prism
def test_a_stream_on_prism_follows_what_grows_and_is_cancelled_when_it_is_asked_to_stop(
    tmp_path: Path, prism: Path
) -> None:
    api = GrowingApi(page=4)
    for name in ("a", "b"):
        api.add(name, *range(10))
        api.certify(name, 9)
    with StreamSite(tmp_path, api) as site:
        flags = BY_NAME["prism_loopback"].flags(prism, None)
        stream = subprocess.Popen(
            [
                sys.executable,
                "-X",
                "faulthandler",
                "-m",
                "gapless_pipelines.cli",
                "stream",
                str(site.job),
                "--",
                *flags,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            site.until_frontier(Bound.through(9))
            for name in ("a", "b"):
                api.add(name, *range(10, 20))
                api.certify(name, 19)
            site.until_frontier(Bound.through(19))
            site.oracle.look()
            stream.send_signal(signal.SIGTERM)
            said = stream.communicate(timeout=90)[1]
        finally:
            stream.kill()
            stream.wait()
        assert stream.returncode == 0, said
        assert "orders: run 1 on PrismRunner, a stream of 2 partitions" in said
        assert "stopped: what was read is promoted and published" in said
        snapshot = site.until(lambda one: True, "a snapshot")
        assert snapshot.run is not None
        assert snapshot.run.state == "stopped"
        local = site.start()
        api.add("a", 20)
        api.add("b", 20)
        api.certify("a", 20)
        api.certify("b", 20)
        site.until_frontier(Bound.through(20))
        assert site.stop(local) == 0, site.said()
        site.oracle.finish()
