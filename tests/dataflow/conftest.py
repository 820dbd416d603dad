"""Jobs with secrets, and their requests; nothing is sent anywhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

try:
    from dataflow_jobs import ENVIRONMENT, load, request_of
    from dataflow_request import Request
except ImportError as error:
    raise ImportError(
        'the tests of Dataflow requests need its packages: pip install "gapless[test]", or only "gapless[gcp]"'
    ) from error

from gapless_pipelines.job import Job


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Its secrets are set in the environment of the launcher, so that they could get into a request."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return load(tmp_path)


@pytest.fixture
def built(job: Job) -> Callable[..., Request]:
    """The request of a job by its name, under further options of Beam's."""
    return lambda name, *arguments: request_of(name, job, *arguments)
