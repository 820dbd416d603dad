"""What streams carry between calls, byte by byte: a job that is updated still reads what the one before it has written."""

from datetime import datetime, timezone

import pytest

from gapless.errors import StoreNewer
from gapless.progress import Bound
from gapless.settling.emitting import ReadingPoint
from gapless.settling.stream_state import StreamState
from gapless.stream_format import StreamStateCoder, WatchStateCoder
from gapless.watching import WatchState

SINCE = datetime(2026, 7, 23, 21, 59, 38, 250999, tzinfo=timezone.utc)
POINT = ReadingPoint("t7", 7, Bound.before(10), Bound.through((2**70, "ü")), ended=True)

PINNED = [
    (StreamStateCoder(), StreamState(), "0198c0c400a000ffc000c2"),
    (
        StreamStateCoder(),
        StreamState(POINT, b"12345678", "g1", 3, 6, SINCE, 2),
        "019895a274370792c402810ac29292c40a89400000000000000000a2c3bcc3c3c4083132333435363738a267310306"
        "d7ff3bd7c3606a628eca02c2",
    ),
    (WatchStateCoder(), WatchState(), "019500009000c2"),
    (WatchStateCoder(), WatchState(3, 300, (7, 8), 2, done=True), "019503cd012c92070802c3"),
]


@pytest.mark.parametrize(("coder", "value", "pinned"), PINNED, ids=lambda one: type(one).__name__)
def test_the_bytes_are_pinned_and_decode_to_what_went_in(coder, value, pinned):
    assert coder.encode(value).hex() == pinned
    assert coder.decode(bytes.fromhex(pinned)) == value
    assert coder.is_deterministic()


@pytest.mark.parametrize("coder", [StreamStateCoder(), WatchStateCoder()])
def test_what_a_newer_version_wrote_is_refused(coder):
    with pytest.raises(StoreNewer, match="restriction in state format 02"):
        coder.decode(b"\x02\x90")
