"""A worker of a message log as a process of its own: `python log_worker_process.py URL IDS EFFECT_DB SECONDS`.

It works until nothing is open and nothing is due, or until it is killed."""

import sys
import time
from pathlib import Path

from range_effects import RememberedRanges

from gapless.delivery import MessageLog, Worker


def main(url: str, ids: str, effect: str, seconds: str) -> None:
    log = MessageLog(
        url,
        table="conversations",
        shard="channel_key",
        terminal=("delivered", "failed"),
        ids=ids,  # type: ignore[arg-type]
    )
    worker = Worker(log, RememberedRanges(Path(effect)), rows=1, audit_every=0.2)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        worker.round()
    log.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
