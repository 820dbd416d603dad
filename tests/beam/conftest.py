"""A scripted source and what judges it, and the options of Beam's local runner."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from scripted_scene import Scene


@pytest.fixture
def scene(tmp_path: Path, sqlite_url: str) -> Scene:
    return Scene(tmp_path, sqlite_url)


def in_memory(workers: int) -> PipelineOptions:
    return PipelineOptions([f"--direct_num_workers={workers}", "--direct_running_mode=in_memory"])


@pytest.fixture(params=[1, 8])
def options(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Of Beam's local runner, with one worker and with eight in memory."""
    return in_memory(request.param)
