"""The worlds that are explored: small ones with every test run, the whole ones in the long tests.

Positions are 1 to 9; a partition's last page certifies its horizon, and a page before it up to its next event, excluded.
"""

from progress_model.source import Switch, World, before, through

_NINE = tuple((position, "abc"[(position - 1) % 3]) for position in range(1, 10))
_SIX = tuple((position, "ab"[index % 2]) for index, position in enumerate((1, 2, 4, 5, 7, 8)))
_TWO_AND_A_NEWCOMER = ((1, "a"), (2, "b"), (3, "c"), (4, "a"), (5, "b"), (6, "c"))

READING = World(
    "two partitions of three pages, zombies and twins",
    _SIX,
    {"a": through(9), "b": through(9)},
    ("a", "b"),
    through(9),
    silent=frozenset({("b", 0)}),
    humble=frozenset({("a", 1)}),
)
PAGES_CUT_ELSEWHERE = World(
    "pages cut elsewhere at each fetch, runs of two pages",
    _SIX[:5],
    {"a": through(8), "b": through(8)},
    ("a", "b"),
    through(8),
    sizes=(1, 2),
    longest_run=2,
    fences=(1,),
)
READING_WHOLE = World(
    "three partitions of three pages, zombies and twins",
    _NINE,
    {"a": through(10), "b": through(10), "c": before(11)},
    ("a", "b", "c"),
    through(10),
    silent=frozenset({("b", 0)}),
    humble=frozenset({("a", 1)}),
)


def membership(name: str, *switches: Switch, ends: bool = False, **options: object) -> World:
    """`a` and `b` are members; where b `ends`, at 6."""
    settings: dict[str, object] = {
        "events": _TWO_AND_A_NEWCOMER,
        "horizon": {"a": through(9), "b": through(6 if ends else 9), "c": through(9)},
        "goal": through(9),
        "workers": 1,
        "fences": (1,),
        **options,
    }
    return World(name, initial=("a", "b"), switches=switches, **settings)  # type: ignore[arg-type]


_C_APPEARS = Switch("c appears", lists=("c",))
_B_ENDS = Switch("b ends", seals=("b", through(6), ()))
_B_SPLITS = Switch("b is sealed", seals=("b", through(6), ("c",)))
_LATER_C = ((1, "a"), (2, "b"), (4, "a"), (5, "b"), (7, "c"), (8, "c"))

NEWCOMER = membership(
    "a newcomer behind the frontier, that vanishes and is back",
    _C_APPEARS,
    Switch("c vanishes", after=("c appears",), hides=("c",)),
    Switch("c is back", after=("c vanishes",), lists=("c",)),
)
CERTIFIED_LIST = membership(
    "a newcomer in a certified list",
    _C_APPEARS,
    certified=(((), before(3)), (("c appears",), through(9))),
    workers=2,
)
LEAVER = membership("one ends, and one comes", _B_ENDS, _C_APPEARS, ends=True, observers=2)
VANISHED = membership("one may vanish", _B_ENDS, Switch("b is not listed", hides=("b",)), ends=True)
SPLIT = membership(
    "one is sealed, and another carries on",
    _B_SPLITS,
    Switch("c appears", after=("b is sealed",), lists=("c",)),
    ends=True,
    events=_LATER_C,
    parents={"c": ("b",)},
    observers=2,
)
SPLIT_IN_ANY_ORDER = membership(
    "one is sealed or vanishes, another appears, in any order",
    _B_SPLITS,
    _C_APPEARS,
    Switch("b is not listed", hides=("b",)),
    ends=True,
    workers=2,
    observers=2,
)
MEMBERSHIP_WHOLE = membership(
    "a newcomer, a leaver, three pages each, zombies",
    Switch("b is sealed", seals=("b", through(8), ("c",))),
    _C_APPEARS,
    events=_NINE,
    horizon={"a": through(10), "b": through(8), "c": through(10)},
    goal=through(10),
    workers=2,
    parents={"c": ("b",)},
)

_MOVES_AND_BACK = ((1, "aaa"), (2, "bbb"), (8, "bab"), (9, "aaa"))
_TO_A_NEWCOMER = ((1, "aaa"), (2, "bcc"), (8, "cac"), (9, "aaa"))
_R2 = Switch("routing r2", generation=1)
_R3 = Switch("routing r3", after=("routing r2",), generation=2)


def routing(proof: str, **options: object) -> World:
    """Event 8 is b's, then a's, then b's again under a third generation."""
    settings: dict[str, object] = {
        "name": f"routing that changes, and back; proof: {proof}",
        "events": _MOVES_AND_BACK,
        "horizon": {"a": through(10), "b": through(10)},
        "goal": through(10),
        "switches": (_R2, _R3),
        "handoffs": (through(1), through(8), through(10)) if proof == "handoff" else (),
        "workers": 1,
        "fences": (1,),
        **options,
    }
    return World(initial=("a", "b"), proof=proof, **settings)  # type: ignore[arg-type]


def routing_to_a_newcomer(proof: str, **options: object) -> World:
    """Event 8 is of an unseen partition c, then a's, then c's again; 2 moves to c."""
    return routing(
        proof,
        **{
            "name": f"routing that moves events to a newcomer; proof: {proof}",
            "events": _TO_A_NEWCOMER,
            "horizon": {"a": through(10), "b": through(10), "c": through(10)},
            "switches": (_C_APPEARS, Switch("routing r2", lists=("c",), generation=1), _R3),
            **options,
        },
    )


IN_THE_MIDDLE_OF_A_RUN = routing("none", confirm=True, longest_run=2, workers=2)
"""Pages do not carry their generation; runs of two pages."""


def one_is_gone(proof: str, certified: bool) -> World:
    """Under r2 there is no b: its events are c's and a's."""
    return routing_to_a_newcomer(
        proof,
        name=f"routing under which one is gone; proof: {proof}; {'certified' if certified else 'frozen'} list",
        events=((1, "aa"), (2, "bc"), (8, "ba"), (9, "aa")),
        switches=(Switch("routing r2", lists=("c",), hides=("b",), generation=1),),
        handoffs=(through(1), through(10)) if proof == "handoff" else (),
        certified=(((), through(10)),) if certified else (),
    )


SMALL = (
    READING,
    PAGES_CUT_ELSEWHERE,
    NEWCOMER,
    CERTIFIED_LIST,
    LEAVER,
    VANISHED,
    SPLIT,
    IN_THE_MIDDLE_OF_A_RUN,
    routing("moves"),
    routing("handoff", confirm=True),
    routing("again", switches=(_R2,)),
    routing_to_a_newcomer("moves"),
    routing_to_a_newcomer("handoff", handoffs=(through(1), through(10))),
    routing_to_a_newcomer("again", switches=(Switch("routing r2", lists=("c",), generation=1),)),
    one_is_gone("again", certified=True),
    one_is_gone("again", certified=False),
    one_is_gone("handoff", certified=True),
    one_is_gone("moves", certified=True),
)

_THREE_PAGES_EACH = (
    (1, "aaa"),
    (2, "bbb"),
    (3, "ccc"),
    (4, "aaa"),
    (5, "bcb"),
    (6, "ccc"),
    (7, "aaa"),
    (8, "bab"),
    (9, "cbc"),
)
_THREE = {"a": through(10), "b": through(10), "c": through(10)}

WHOLE = (
    READING_WHOLE,
    SPLIT_IN_ANY_ORDER,
    MEMBERSHIP_WHOLE,
    *(
        routing(proof, workers=2, confirm=confirm)
        for proof in ("moves", "handoff")
        for confirm in (False, True)
    ),
    routing("again"),
    *(routing("again", switches=(_R2,), workers=2, confirm=confirm) for confirm in (False, True)),
    routing_to_a_newcomer("again", events=_TO_A_NEWCOMER[1:]),
    routing_to_a_newcomer("handoff", confirm=True, workers=2),
    routing_to_a_newcomer("moves", workers=2),
    *(
        routing(
            proof,
            name=f"three partitions of three pages, a newcomer, routing that changes, and back; proof: {proof}",
            events=_THREE_PAGES_EACH,
            horizon=_THREE,
            switches=(
                Switch("routing r2", lists=("c",), generation=1),
                *((_R3,) if proof != "again" else ()),
            ),
            handoffs=(through(4), through(10)) if proof == "handoff" else (),
        )
        for proof in ("moves", "handoff", "again")
    ),
    *(
        routing(
            proof,
            name=f"three partitions of three pages, a split, routing that changes; proof: {proof}",
            events=(*_THREE_PAGES_EACH[:8], (9, "ccc")),
            horizon={**_THREE, "b": through(8)},
            switches=(
                Switch("b is sealed", seals=("b", through(8), ("c",))),
                _C_APPEARS,
                Switch("routing r2", lists=("c",), generation=1),
            ),
            handoffs=(through(4), through(10)) if proof == "handoff" else (),
        )
        for proof in ("moves", "handoff", "again")
    ),
)
