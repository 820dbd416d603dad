"""Engines, and a job against the hostile API that runs on them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_site import LIVELY, EngineSite
from hostile_universe import Knobs
from scripted_scene import Scene

from engines import ENGINES, Engine


def _marked(engine: Engine) -> Any:
    marks = [pytest.mark.prism] if engine.prism else []
    marks += [pytest.mark.postgres] if engine.apart else []
    return pytest.param(engine, id=engine.name, marks=marks)


@pytest.fixture(params=[_marked(engine) for engine in ENGINES])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each in turn."""
    one: Engine = request.param
    return one


@pytest.fixture(params=[_marked(engine) for engine in ENGINES if engine.streams])
def streaming_engine(request: pytest.FixtureRequest) -> Engine:
    """Each in turn of those that may stream."""
    one: Engine = request.param
    return one


@pytest.fixture
def scene(tmp_path: Path, sqlite_url: str) -> Scene:
    return Scene(tmp_path, sqlite_url)


@pytest.fixture
def make_site(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., EngineSite]]:
    """A site for some engines: on PostgreSQL where a worker of one of them is apart, else on SQLite."""
    sites: list[EngineSite] = []

    def make(way: str, *engines: Engine, knobs: Knobs | None = None, **job: Any) -> EngineSite:
        apart = any(engine.apart for engine in engines)
        binary = request.getfixturevalue("prism") if any(engine.prism for engine in engines) else None
        folder = tmp_path / f"site{len(sites)}"
        folder.mkdir()
        url = request.getfixturevalue("new_postgres_url")() if apart else f"sqlite:///{folder}/progress.db"
        sites.append(EngineSite(folder, url, way, knobs or Knobs(seed=3, **LIVELY), binary, **job))
        return sites[-1]

    yield make
    for site in sites:
        site.close()
