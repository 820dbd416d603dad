"""How a job file says how its stream polls."""

from collections.abc import Callable

import pytest

from gapless.polling import Polling
from gapless_pipelines.job import Job

Spoil = Callable[..., list[str]]


def test_a_stream_polls_as_the_file_says(load: Callable[[str], Job], good: str) -> None:
    assert load(good).polling() == Polling(every=2.0, longest=20.0, look_every=60.0)


def test_without_a_word_it_polls_as_the_library_does(load: Callable[[str], Job], good: str) -> None:
    assert load(good.replace("stream: {poll: 2s, longest: 20s, look: 1m}\n", "")).polling() == Polling()


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{poll: 30s, longest: 20s}", "stream: `longest` is shorter than `poll`"),
        ("{poll: 0s}", "stream.poll: a duration has to be longer than nothing"),
        ("{poll: 5}", "stream.poll: not a duration"),
        ("{every: 5s}", "stream.every: unknown key; allowed: longest, look, poll"),
    ],
)
def test_what_cannot_be_is_refused(spoil: Spoil, written: str, said: str) -> None:
    (finding,) = spoil(("{poll: 2s, longest: 20s, look: 1m}", written))
    assert said in finding
