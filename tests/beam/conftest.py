"""A scripted source and what judges it, and the options of Beam's local runner."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from scripted_scene import Scene
from scripted_universe import source_of, universe
from tracked_chains import TrackedChains

TRACKED = universe(partitions=1, pages=4, events=3)


@pytest.fixture
def scene(tmp_path: Path, sqlite_url: str) -> Scene:
    return Scene(tmp_path, sqlite_url)


def in_memory(workers: int) -> PipelineOptions:
    return PipelineOptions([f"--direct_num_workers={workers}", "--direct_running_mode=in_memory"])


@pytest.fixture(params=[1, 8])
def options(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Of Beam's local runner, with one worker and with eight in memory."""
    return in_memory(request.param)


@pytest.fixture
def tracked(sqlite_url: str) -> Iterator[Callable[..., TrackedChains]]:
    """Chains of one partition, four pages and three events a page, each time with a tracker of their own."""
    opened: list[TrackedChains] = []

    def open_one(stream: bool = False, only_at_the_end: bool = False) -> TrackedChains:
        source = source_of(TRACKED, events=3)
        opened.append(TrackedChains(sqlite_url, source, stream=stream, only_at_the_end=only_at_the_end))
        return opened[-1]

    yield open_one
    for chains in opened:
        chains.close()


@pytest.fixture
def chains(tracked: Any) -> Any:
    return tracked()
