"""Jobs with secrets, and their requests; nothing is sent anywhere."""

import os
from collections.abc import Callable
from functools import cache
from unittest import mock

import pytest

try:
    from dataflow_jobs import ENVIRONMENT, load, request_of
    from dataflow_request import Request
except ImportError as error:
    raise ImportError(
        'the tests of Dataflow requests need its packages: pip install "gapless[test]", or only "gapless[gcp]"'
    ) from error

from gapless_pipelines.job import Job


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return load(tmp_path_factory.mktemp("orders"))


@pytest.fixture(scope="session")
def submitted(job: Job) -> Callable[[str], Request]:
    """A new request of a job by its name. Secrets are set in the environment of the launcher, and could get into it."""

    def submit(name: str) -> Request:
        with mock.patch.dict(os.environ, ENVIRONMENT):
            return request_of(name, job)

    return submit


@pytest.fixture(scope="session")
def built(submitted: Callable[[str], Request]) -> Callable[[str], Request]:
    """The same, built once and looked at by many tests."""
    return cache(submitted)
