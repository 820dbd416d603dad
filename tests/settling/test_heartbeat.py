"""Signs of life of a run: one thread a process and run while readers work, which disturbs nobody and outlives nobody."""

import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager

import pytest

from gapless.errors import StoreUnreadable
from gapless.progress import IntegerDomain
from gapless.settling import heartbeat
from gapless.settling.heartbeat import beating
from gapless.store import open_store
from gapless.store.records import ScopeIdentity
from gapless.store_ref import StoreRef

LONG = 60.0


class Heard:
    """Stands for the reference of a store: counts beats, by whom, and lets a test wait for the next one."""

    def __init__(self):
        self.changed = threading.Condition()
        self.beats = []
        self.fails_with = None
        self.alive = True

    @contextmanager
    def open(self):
        yield self

    def heartbeat(self, run_id):
        with self.changed:
            self.beats.append((run_id, threading.current_thread()))
            self.changed.notify_all()
        if self.fails_with is not None:
            raise self.fails_with
        return self.alive

    def wait_for(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.beats) >= count, 20)


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def quickly(monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.002)
    monkeypatch.setattr(heartbeat, "LINGER_SECONDS", 0.0)


def ended(thread):
    thread.join(20)
    return not thread.is_alive()


def test_all_readers_of_a_run_in_a_process_share_one_thread(heard, quickly):
    with beating(heard, "run"), beating(heard, "run"):
        heard.wait_for(3)
    assert {run for run, _ in heard.beats} == {"run"}
    (thread,) = {thread for _, thread in heard.beats}
    assert thread.daemon, "it keeps no process alive"
    assert ended(thread), "nobody reads any more"


def test_it_beats_while_one_reader_is_left(heard, quickly):
    with beating(heard, "run"):
        with beating(heard, "run"):
            heard.wait_for(1)
        heard.wait_for(len(heard.beats) + 3)


def test_runs_and_stores_have_hearts_of_their_own(heard, quickly):
    other = Heard()
    with beating(heard, "one"), beating(heard, "two"), beating(other, "one"):
        heard.wait_for(4)
        other.wait_for(2)
    assert {run for run, _ in heard.beats} == {"one", "two"}
    assert len({thread for _, thread in [*heard.beats, *other.beats]}) == 3


def test_between_the_polls_of_a_stream_the_same_heart_goes_on(heard, monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.002)
    monkeypatch.setattr(heartbeat, "LINGER_SECONDS", LONG)
    with beating(heard, "run"):
        heard.wait_for(1)
    heard.wait_for(len(heard.beats) + 3)
    with beating(heard, "run", to_the_end=True):
        heard.wait_for(len(heard.beats) + 1)
    (thread,) = {thread for _, thread in heard.beats}
    assert not thread.is_alive(), "the run is over here"


def test_of_a_run_that_has_ended_nobody_goes_on_telling(heard, monkeypatch):
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.002)
    monkeypatch.setattr(heartbeat, "LINGER_SECONDS", LONG)
    heard.alive = False
    with beating(heard, "run", pause=LONG):
        heard.wait_for(3)
    assert ended(heard.beats[0][1])


def test_a_stream_with_long_pauses_is_given_them(heard, quickly):
    with beating(heard, "run", pause=LONG):
        heard.wait_for(1)
    heard.wait_for(len(heard.beats) + 3)
    with beating(heard, "run", to_the_end=True):
        pass
    assert ended(heard.beats[0][1])


def test_who_reads_again_after_it_has_ended_gets_another(heard, quickly):
    with beating(heard, "run"):
        heard.wait_for(1)
    assert ended(heard.beats[0][1])
    before = len(heard.beats)
    with beating(heard, "run"):
        heard.wait_for(before + 1)
    assert heard.beats[-1][1] is not heard.beats[0][1]


@pytest.mark.parametrize("error", [StoreUnreadable("the server is away"), RuntimeError("whatever it is")])
def test_a_store_that_cannot_be_told_ends_neither_the_reader_nor_the_heart(heard, quickly, caplog, error):
    heard.fails_with = error
    with caplog.at_level(logging.WARNING), beating(heard, "run"):
        heard.wait_for(2)
        heard.fails_with = None
        heard.wait_for(len(heard.beats) + 2)
    assert "no sign of life was given" in caplog.text


def test_an_error_of_the_reader_passes_through(heard, quickly):
    def read():
        with beating(heard, "run"):
            heard.wait_for(1)
            raise KeyError("of the reader")

    with pytest.raises(KeyError):
        read()
    assert ended(heard.beats[0][1])


def test_a_forked_reader_has_a_heart_of_its_own(heard, quickly):
    with beating(heard, "run"):
        heard.wait_for(1)
        with warnings.catch_warnings():
            # Python 3.12 warns of the heart's thread; the child starts its own.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            status = 1
            try:
                own = Heard()
                with beating(own, "run"):
                    own.wait_for(2)
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.fixture
def run_in(store_url):
    with open_store(store_url, create=True) as store:
        store.register_scope(ScopeIdentity("orders", IntegerDomain(), {}))
        store.begin_run("orders", "run", "local")
        yield store


def test_in_a_real_store_the_last_sign_of_life_moves_and_an_ended_run_stays_ended(run_in, store_url, quickly):
    began = run_in.snapshot("orders").run.heartbeat_at
    with beating(StoreRef(store_url), "run", to_the_end=True):
        deadline = time.monotonic() + 20
        while run_in.snapshot("orders").run.heartbeat_at == began:
            assert time.monotonic() < deadline
        run_in.end_run("run", "stopped")
        ended_at = run_in.snapshot("orders").run.heartbeat_at
    run = run_in.snapshot("orders").run
    assert (run.state, run.heartbeat_at) == ("stopped", ended_at)


def test_it_keeps_no_process_alive(run_in, store_url):
    code = (
        "from gapless.settling.heartbeat import beating; from gapless.store_ref import StoreRef\n"
        f"beating(StoreRef({store_url!r}), 'run').__enter__()"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
