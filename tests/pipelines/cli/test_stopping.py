import os
import signal

import pytest

from gapless_pipelines.cli.stopping import Stopping


class Told:
    """What a `Stopping` has called, in order."""

    def __init__(self) -> None:
        self.calls: list[object] = []
        self.stopping = Stopping(
            lambda: self.calls.append("last words"), lambda status: self.calls.append(status)
        )

    def ask(self) -> None:
        self.calls.append("ask")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_ends(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    told = Told()
    with told.stopping as stopping:
        stopping.ask_by(told.ask)
        os.kill(os.getpid(), number)
        assert told.calls == ["ask"]
        assert "stopping after the page in hand" in capfd.readouterr().err
        os.kill(os.getpid(), number)
        assert told.calls == ["ask", "last words", 128 + number]
        assert "stopped at once" in capfd.readouterr().err


def test_a_signal_before_the_run_has_begun_is_remembered() -> None:
    told = Told()
    with told.stopping as stopping:
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.calls == []
        stopping.ask_by(told.ask)
        assert told.calls == ["ask"]


def test_an_engine_that_cannot_be_asked_is_interrupted() -> None:
    told = Told()
    with told.stopping as stopping:
        stopping.interrupt()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert told.calls == []


def test_an_engine_that_cannot_be_asked_hears_of_an_earlier_signal() -> None:
    told = Told()
    with told.stopping as stopping:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            stopping.interrupt()


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Told().stopping:
        assert signal.getsignal(signal.SIGINT) not in before
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
