"""The statements by which a chain and a scope's frontier change, each built once. Their conditions are what makes them safe.

Building a statement costs more than running it on SQLite; parameters are named `at_...` in conditions and `new_...` in values.
"""

from typing import Any, Final

import sqlalchemy as sa

from gapless.progress import ChainState
from gapless.store import schema
from gapless.store.columns import UtcTime, higher_of, lower_of
from gapless.store.records import ChainRow

_chain = schema.chain.c
_scope = schema.scope.c
_OPEN = ChainState.OPEN.value
_HELD = ChainState.HELD.value


def _new(column: sa.Column[Any]) -> sa.BindParameter[Any]:
    return sa.bindparam(f"new_{column.name}", type_=column.type)


def _at(column: sa.Column[Any]) -> sa.BindParameter[Any]:
    return sa.bindparam(f"at_{column.name}", type_=column.type)


UNCHANGED: Final = sa.and_(
    _chain.chain == _at(_chain.chain),
    _chain.fencing_token == _at(_chain.fencing_token),
    _chain.sequence == _at(_chain.sequence),
    _chain.page_token.is_not_distinct_from(_at(_chain.page_token)),
    _chain.generation == _at(_chain.generation),
    _chain.epoch_out.is_(None),
)
"""The compare of every compare-and-swap on a chain: since the row was read nobody has taken or promoted it, changed its routing
or closed it. Scope and lineage are the chain's for ever; its state is each statement's own condition."""


def at(expected: ChainRow) -> dict[str, Any]:
    """The parameters of `UNCHANGED`."""
    return {
        "at_chain": expected.chain,
        "at_fencing_token": expected.fencing_token,
        "at_sequence": expected.sequence,
        "at_page_token": expected.page_token,
        "at_generation": expected.generation,
    }


NOT_SKIPPED: Final = _chain.dead_letters == _at(_chain.dead_letters)
"""Since the row was read no event was given up on, as an operator may at any time: whoever has it in hand reads what was decided,
and makes no second outcome of it. `at_dead_letters`."""


TAKE: Final = (
    sa.update(schema.chain)
    .where(_chain.chain == _at(_chain.chain), _chain.fencing_token <= _new(_chain.fencing_token))
    .values(
        fencing_token=_new(_chain.fencing_token),
        state=sa.case((_chain.state == sa.text(f"'{_HELD}'"), sa.text(f"'{_OPEN}'")), else_=_chain.state),
    )
    .returning(schema.chain)
)
"""`at_chain`, `new_fencing_token`. No row: a newer run has it, or there is no such chain."""

PROMOTE: Final = (
    sa.update(schema.chain)
    .where(UNCHANGED, NOT_SKIPPED, _chain.state == _OPEN)
    .values(
        page_token=_new(_chain.page_token),
        sequence=_chain.sequence + sa.bindparam("pages", type_=sa.BigInteger),
        bound=higher_of(_chain.bound, _new(_chain.bound)),
        read_to=higher_of(_chain.read_to, _new(_chain.read_to)),
        # An assertion that does not raise the bound proves nothing and taints nothing; one that does stays in it for ever.
        basis=sa.case(
            (
                sa.and_(_chain.bound < _new(_chain.bound), _new(_chain.basis) == sa.text("'asserted'")),
                sa.text("'asserted'"),
            ),
            else_=_chain.basis,
        ),
        events=_chain.events + _new(_chain.events),
        drift=_chain.drift + _new(_chain.drift),
        state=_new(_chain.state),
        **{column.name: None for column in schema.chain.c if column.name.startswith("blocker_")},
    )
    .returning(schema.chain)
)

RESTART: Final = (
    sa.update(schema.chain)
    .where(UNCHANGED, _chain.state == _OPEN)
    .values(page_token=_new(_chain.page_token))
    .returning(schema.chain)
)


def _hold(*states: str) -> sa.Update:
    return (
        sa.update(schema.chain)
        .where(UNCHANGED, NOT_SKIPPED, _chain.state.in_(states))
        .values(
            state=_new(_chain.state),
            blocker_code=_new(_chain.blocker_code),
            blocker_hint=_new(_chain.blocker_hint),
            blocker_event_id=_new(_chain.blocker_event_id),
            blocker_position=_new(_chain.blocker_position),
            # Since when the same code has held on the same event, however many runs have tried.
            blocker_since=sa.case(
                (
                    sa.and_(
                        _chain.blocker_code == _new(_chain.blocker_code),
                        _chain.blocker_event_id.is_not_distinct_from(_new(_chain.blocker_event_id)),
                    ),
                    _chain.blocker_since,
                ),
                else_=_new(_chain.blocker_since),
            ),
            blocker_retry_at=_new(_chain.blocker_retry_at),
        )
    )


HOLD: Final = _hold(_OPEN, _HELD)
EXPLAIN: Final = _hold(_OPEN)

OPEN_PAGE: Final = (
    sa.select(_chain.chain).where(UNCHANGED, _chain.state.in_((_OPEN, _HELD))).with_for_update()
)
"""Locks the chain's row where it is unchanged."""

ADD_DEAD_LETTERS: Final = (
    sa.update(schema.chain)
    .where(_chain.chain == _at(_chain.chain))
    .values(dead_letters=_chain.dead_letters + _new(_chain.dead_letters))
    .returning(schema.chain)
)


def _publish() -> sa.Update:
    lineage = sa.select(_scope.lineage).where(_scope.scope == _at(_scope.scope)).scalar_subquery()
    minimum = (
        sa.select(_chain.bound)
        .where(_chain.scope == _at(_scope.scope), _chain.lineage == lineage, schema.is_member())
        .order_by(_chain.bound)
        .limit(sa.literal_column("1"))
        .subquery("minimum")
    )
    asserted = (
        sa.select(_chain.chain)
        .where(
            _chain.scope == _at(_scope.scope),
            _chain.lineage == lineage,
            schema.is_member(),
            _chain.basis == sa.text("'asserted'"),
        )
        .exists()
    )
    frontier = lower_of(minimum.c.bound, _scope.cap)
    return (
        sa.update(schema.scope)
        .where(
            _scope.scope == _at(_scope.scope), _scope.epoch == _at(_scope.epoch), _scope.frontier < frontier
        )
        .values(
            frontier=frontier,
            basis=sa.case((asserted, sa.text("'asserted'")), else_=_scope.basis),
            published_at=sa.bindparam("new_published_at", type_=UtcTime),
        )
    )


PUBLISH: Final = _publish().returning(schema.scope)
"""`at_scope`, `at_epoch`, `new_published_at`: the minimum by index, from the rows, capped, only upwards, in one statement."""
