"""A pipeline in a program of its own, as a user writes it. Run with a folder, a store URL, and Beam's options:

    python pipeline_as_a_user_writes_it.py FOLDER STORE_URL [--runner=...]

Prints the runner whose result it was, and how many readers were at work at once at most.
"""

import sys
import threading
import time
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from scripted_universe import source_of, universe

from gapless import CompleteThrough, ParquetEffect
from gapless.paging.page import Page, Partition
from gapless.testing import ScriptedSession, ScriptedSource

_lock = threading.Lock()
_reading: set[str] = set()
_most = 0


class SlowSource(ScriptedSource):
    """Each page takes a little, so that partitions are read at once where they can be."""

    def open(self) -> "SlowSession":
        return SlowSession(self)


class SlowSession(ScriptedSession):
    def fetch(self, partition: Partition, page_token: str | None) -> Page:
        global _most
        with _lock:
            _reading.add(partition.id)
            _most = max(_most, len(_reading))
        time.sleep(0.02)
        page = super().fetch(partition, page_token)
        if page.end:
            with _lock:
                _reading.discard(partition.id)
        return page


def main() -> None:
    folder, url, *arguments = sys.argv[1:]
    there = universe()
    source = source_of(there, kind=SlowSource)
    effect = ParquetEffect(str(Path(folder) / "out"), target_rows=10)
    pipeline = beam.Pipeline(options=PipelineOptions(arguments))
    _ = pipeline | CompleteThrough(source, effect, url)
    result = pipeline.run()
    result.wait_until_finish()
    print(type(result).__module__.rpartition(".")[2], _most)


if __name__ == "__main__":
    # By its own name, so that what is pickled is found there, and not in __main__.
    import pipeline_as_a_user_writes_it

    pipeline_as_a_user_writes_it.main()
