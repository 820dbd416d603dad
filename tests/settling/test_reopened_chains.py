"""Streams and backfills of one scope, each of which goes on from what the other has left durable, chains that had ended, too."""

from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa
from growing_api import GrowingApi, source_block

from gapless.audit import audit
from gapless.paging.http import HttpSource
from gapless.progress import Bound, ChainState
from gapless.reopen import AT_BOUND, AT_TOKEN, reopen_ended
from gapless.store import schema

STYLES = ["more", "null"]


def source_of(api: GrowingApi, tail: str | None = None, **changes: Any) -> HttpSource:
    return HttpSource(scope="scripted", domain={"type": "integer"}, **{**source_block(api, tail), **changes})


def journal(bench: Any) -> list[tuple[str, str]]:
    with bench.store.evidence("scripted") as evidence:
        return [(row["action"], row["reason"]) for row in evidence.journal()]


def contradictions(bench: Any) -> list[str]:
    """All but those about files: the bench's effect keeps its runs in memory."""
    return [one.code for one in audit(bench.store, "scripted").contradictions if "file" not in one.code]


def require_clean(bench: Any) -> None:
    assert contradictions(bench) == []


@pytest.mark.parametrize("style", STYLES)
def test_a_stream_goes_on_where_a_backfill_has_ended_the_chain(each_bench: Any, style: str) -> None:
    bench = each_bench
    with GrowingApi(style) as api:
        api.add("eu", 1, 2, 3, 4)
        api.certify("eu", 4, exclusive=style == "null")
        source = source_of(api)
        bench.run(source).settle_all()
        ended = bench.chain("eu")
        assert (ended.state, ended.page_token) == (ChainState.ENDED, None)
        api.add("eu", 4, 5, 6)
        api.certify("eu", 6)
        stream = bench.run(source.following())
        assert bench.chain("eu").state is ChainState.OPEN
        assert bench.chain("eu").bound == ended.bound
        require_clean(bench)
        stream.settle_all()
        require_clean(bench)
        assert sorted(bench.data()["eu"]) == sorted(api.expected()["eu"])
        assert bench.frontier() == Bound.through(6)
        assert journal(bench) == [("reopen", AT_TOKEN)]
        bench.run(source).settle_all()
        assert bench.chain("eu").state is ChainState.ENDED
        require_clean(bench)
        assert len(bench.data()["eu"]) == 7


def test_a_chain_that_ended_without_a_token_for_going_on_restarts_at_its_bound_and_says_what_may_come_again(
    bench: Any,
) -> None:
    with GrowingApi() as api:
        api.add("eu", 1, 2, 3)
        api.certify("eu", 3, exclusive=True)
        block = source_block(api)
        del block["pages"]["tail"]
        bench.run(HttpSource(scope="scripted", domain={"type": "integer"}, **block)).settle_all()
        api.add("eu", 4)
        api.certify("eu", 4)
        source = source_of(api)
        bench.run(source.following()).settle_all()
        require_clean(bench)
        assert journal(bench) == [("reopen", AT_BOUND)]
        data = bench.data()["eu"]
        assert set(data) == set(api.expected()["eu"])
        assert bench.frontier() == Bound.through(4)


def test_a_chain_that_the_source_has_ended_for_good_stays_ended(bench: Any) -> None:
    with GrowingApi() as api:
        api.add("eu", 1)
        api.certify("eu", 1)
        source = source_of(api, "token")
        bench.run(source).settle_all()
        stream = bench.run(source.following())
        assert stream.plan.tasks == []
        assert bench.chain("eu").state is ChainState.ENDED
        assert journal(bench) == []


def test_a_bounded_read_opens_nothing(bench: Any) -> None:
    with GrowingApi() as api:
        api.add("eu", 1)
        api.certify("eu", 1)
        bench.run(source_of(api)).settle_all()
        assert bench.run(source_of(api)).plan.tasks == []
        assert bench.chain("eu").state is ChainState.ENDED


def test_an_older_run_opens_nothing_that_a_newer_one_has(bench: Any) -> None:
    with GrowingApi() as api:
        api.add("eu", 1)
        api.certify("eu", 1)
        source = source_of(api)
        older = bench.run(source)
        bench.run(source).settle_all()
        snapshot = bench.snapshot()
        rows = reopen_ended(
            source.following(), bench.store, snapshot.scope, snapshot.chains, older.plan.number
        )
        assert [row.state for row in rows] == [ChainState.ENDED]
        assert journal(bench) == []


def test_a_range_that_is_proved_to_its_end_is_not_opened_again(bench: Any) -> None:
    with GrowingApi() as api:
        api.add("eu", 1, 2)
        api.certify("eu", 5)
        source = source_of(api, range={"stop": 3})
        bench.run(source).settle_all()
        assert bench.run(source.following()).plan.tasks == []


def test_only_one_of_two_that_read_the_same_row_opens_it(bench: Any) -> None:
    with GrowingApi() as api:
        api.add("eu", 1)
        api.certify("eu", 1)
        source = source_of(api)
        bench.run(source).settle_all()
        row = bench.chain("eu")
        token = bench.store.resume_token(row)
        with closing(bench.open()) as other:
            assert other.reopen(row, token, "first") is not None
        assert bench.store.reopen(row, token, "second") is None
        assert [reason for _, reason in journal(bench)] == ["first"]


def test_a_token_that_was_put_in_place_of_an_end_without_an_entry_is_found_by_the_audit(bench: Any) -> None:
    with GrowingApi() as api:
        api.add("eu", 1)
        api.certify("eu", 1)
        source = source_of(api)
        bench.run(source).settle_all()
        bench.run(source.following())
        require_clean(bench)
        bench.store._database.write(lambda connection: connection.execute(sa.delete(schema.journal)))
        assert "checkpoint_differs" in contradictions(bench)
