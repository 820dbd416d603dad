from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gapless.progress import Bound

Gapless = Callable[..., Any]
STORE = ("--store", "sqlite:///progress.db")


@pytest.fixture
def changed(orders: Any, job: Path) -> Any:
    """Members a and b, published through 100; the list has a and the newcomer c, complete through 40."""
    orders.begin("a", "b")
    orders.promote("a", 120)
    orders.promote("b", 100)
    orders.publish()
    newcomer(orders, "c", 40)
    return orders


def newcomer(orders: Any, name: str, position: int) -> None:
    rows = {row.partition: row for row in orders.observe("a", name)}
    taken = orders.store.take(rows[name].chain, 1)
    assert taken is not None
    orders.rows[name] = taken
    orders.promote(name, position)


def contents(orders: Any) -> Any:
    """What must not change where a command refuses."""
    snapshot = orders.store.snapshot(orders.scope)
    return snapshot.scope, snapshot.chains, snapshot.superseded


class TestShow:
    def test_json_names_members_candidates_and_what_is_missing(self, gapless: Gapless, changed: Any) -> None:
        ran = gapless("epoch", "show", "--json")
        assert (ran.exit_status, ran.err) == (0, "")
        document = ran.document
        assert {key: document[key] for key in ("format", "scope", "lineage", "membership_epoch")} == {
            "format": 1,
            "scope": "orders",
            "lineage": 1,
            "membership_epoch": 1,
        }
        assert document["routing_generation"] == ""
        assert document["frontier"]["position"] == "100"
        assert [(row["partition"], row["state"], row["bound"]) for row in document["members"]] == [
            ("b", "open", {"position": "100", "inclusive": True}),
            ("a", "open", {"position": "120", "inclusive": True}),
        ]
        assert [row["listed"] for row in document["members"]] == [False, True]
        (candidate,) = document["candidates"]
        assert (candidate["partition"], candidate["bound"]["position"]) == ("c", "40")
        assert document["missing"] == [
            {
                "partition": "b",
                "code": "unsealed_member",
                "detail": "it is not listed, and nobody stated where it ends",
            },
            {
                "partition": "c",
                "code": "not_joined",
                "detail": "it is complete: through 40; published: through 100",
            },
        ]
        assert document["ready"] is False
        assert document["cap"] == {"position": "100", "inclusive": True}

    def test_lines_say_the_same(self, gapless: Gapless, changed: Any) -> None:
        ran = gapless("epoch", "show")
        assert ran.out == ""
        assert ran.lines[0] == "orders: membership epoch 1, lineage 1, list frozen"
        assert ran.lines[2:10] == [
            "  2 members",
            "    b: active, through 100; no longer listed",
            "    a: active, through 120",
            "  1 candidate",
            "    c: active, through 40",
            "  the list lets the frontier go through 100",
            "missing: b: unsealed_member: it is not listed, and nobody stated where it ends",
            "missing: c: not_joined: it is complete: through 40; published: through 100",
        ]
        assert ran.lines[10].startswith("  unsealed_member is released by: ")

    def test_an_epoch_made_of_the_latest_list_lacks_nothing(
        self, gapless: Gapless, orders: Any, job: Path
    ) -> None:
        orders.begin("a")
        assert gapless("epoch", "show", "--json").document["missing"] == []
        assert (
            gapless("epoch", "show").lines[-1] == "nothing is to change: the epoch is made of the latest list"
        )

    def test_before_any_run_the_list_is_what_is_missing(
        self, gapless: Gapless, orders: Any, job: Path
    ) -> None:
        orders.begin()
        (missing,) = gapless("epoch", "show", "--json").document["missing"]
        assert (missing["partition"], missing["code"]) == (None, "not_started")

    def test_many_members_are_shown_in_part_unless_all_are_asked_for(
        self, gapless: Gapless, orders: Any, job: Path
    ) -> None:
        orders.begin(*(f"p{number:02}" for number in range(25)))
        assert "    and 5 more: --all shows them" in gapless("epoch", "show").lines
        lines = gapless("epoch", "show", "--all").lines
        assert sum(line.startswith("    p") for line in lines) == 25
        assert len(gapless("epoch", "show", "--json").document["members"]) == 25

    def test_text_of_a_source_cannot_move_the_cursor(self, gapless: Gapless, orders: Any, job: Path) -> None:
        orders.begin("a\x1b[2J")
        for arguments in (("show",), ("seal", "a\x1b[2J", "--at", "5", "--reason", "x\x1b[2J")):
            ran = gapless("epoch", *arguments)
            assert ran.exit_status == 0, ran.err
            assert all(line.isprintable() for line in ran.lines)


class TestCutover:
    def test_what_is_proved_enters(self, gapless: Gapless, changed: Any) -> None:
        changed.promote("c", 100)
        ran = gapless("epoch", "cutover", "--json")
        assert (ran.exit_status, ran.err) == (0, "")
        assert ran.document == {
            "format": 1,
            "scope": "orders",
            "lineage": 1,
            "dry_run": False,
            "from": 1,
            "to": 2,
            "accepted": True,
            "routing_generation": "",
            "entered": ["c"],
            "left": [],
            "replaced": [],
            "missing": [
                {
                    "partition": "b",
                    "code": "unsealed_member",
                    "detail": "it is not listed, and nobody stated where it ends",
                }
            ],
        }
        assert changed.store.scope("orders").epoch == 2

    def test_refused_it_exits_3_and_changes_nothing(self, gapless: Gapless, changed: Any) -> None:
        before = contents(changed)
        ran = gapless("epoch", "cutover", "--json")
        assert ran.exit_status == 3
        assert ran.document["accepted"] is False
        assert (ran.document["from"], ran.document["to"]) == (1, 2)
        assert [one["code"] for one in ran.document["missing"]] == ["unsealed_member", "not_joined"]
        lines = gapless("epoch", "cutover").lines
        assert lines[0] == "orders: refused, membership epoch 1 stands"
        assert contents(changed) == before

    @pytest.mark.parametrize(("position", "status"), [(100, 0), (40, 3)])
    def test_a_dry_run_says_what_would_come_of_it(
        self, position: int, status: int, gapless: Gapless, changed: Any
    ) -> None:
        changed.promote("c", position)
        before = contents(changed)
        ran = gapless("epoch", "cutover", "--dry-run", "--json")
        assert ran.exit_status == status
        assert (ran.document["accepted"], ran.document["dry_run"]) == (status == 0, True)
        told = gapless("epoch", "cutover", "--dry-run").lines
        assert ("  would enter: c" in told) == (status == 0)
        assert contents(changed) == before

    def test_where_nothing_changed_there_is_nothing_to_do(
        self, gapless: Gapless, orders: Any, job: Path
    ) -> None:
        orders.begin("a")
        ran = gapless("epoch", "cutover", "--json")
        assert ran.exit_status == 0
        assert (ran.document["accepted"], ran.document["from"], ran.document["to"]) == (False, 1, 1)
        assert gapless("epoch", "cutover").lines == [
            "orders: nothing to change, membership epoch 1 is made of the latest list"
        ]

    def test_the_command_that_explain_names_releases_the_frontier(
        self, gapless: Gapless, changed: Any
    ) -> None:
        changed.promote("c", 200)
        (line,) = [one for one in gapless("explain").lines if "epoch cutover" in one and "command" in one]
        assert gapless(*line.split()[2:]).exit_status == 0
        changed.promote("b", 110)
        changed.publish()
        assert gapless("status", "--json").document["frontier"]["position"] == "110"


class TestSeal:
    def seal(self, gapless: Gapless, *arguments: str) -> Any:
        return gapless("epoch", "seal", *arguments, "--reason", "switched off", "--operator", "kim")

    def test_a_sealed_member_leaves_and_the_frontier_is_asserted_from_then_on(
        self, gapless: Gapless, changed: Any
    ) -> None:
        ran = self.seal(gapless, "b", "--at", "100", "--json")
        assert (ran.exit_status, ran.err) == (0, "")
        assert ran.document == {
            "format": 1,
            "scope": "orders",
            "dry_run": False,
            "partition": "b",
            "sealed": {"position": "100", "inclusive": True},
            "reason": "switched off",
            "operator": "kim",
        }
        assert gapless("epoch", "cutover", "--json").document["left"] == ["b"]
        changed.promote("c", 130)
        assert gapless("epoch", "cutover", "--json").document["entered"] == ["c"]
        changed.publish()
        frontier = gapless("status", "--json").document["frontier"]
        assert (frontier["position"], frontier["basis"]) == ("120", "asserted")

    def test_one_that_vanished_at_an_exclusive_bound_is_sealed_right_there(
        self, gapless: Gapless, orders: Any, job: Path
    ) -> None:
        """Its last position is not known, and there may be none before the bound that has a name: only where it ends is."""
        orders.begin("a", "b")
        orders.promote("a", 120)
        orders.promote("b", 90, bound=Bound.before(100))
        orders.publish()
        orders.observe("a")
        ran = self.seal(gapless, "b", "--before", "100", "--json")
        assert (ran.exit_status, ran.document["sealed"]) == (0, {"position": "100", "inclusive": False})
        assert gapless("epoch", "cutover", "--json").document["left"] == ["b"]
        orders.publish()
        frontier = gapless("status", "--json").document["frontier"]
        assert (frontier["position"], frontier["basis"]) == ("120", "asserted")

    def test_a_dry_run_checks_and_changes_nothing(self, gapless: Gapless, changed: Any) -> None:
        before = contents(changed)
        ran = self.seal(gapless, "b", "--at", "100", "--dry-run")
        assert (ran.exit_status, ran.lines[-1]) == (0, "nothing was changed")
        assert self.seal(gapless, "b", "--at", "99", "--dry-run").exit_status == 2
        assert contents(changed) == before

    @pytest.mark.parametrize(
        ("arguments", "what"),
        [
            (["bb", "--at", "100"], "no member or candidate 'bb'"),
            (["b", "--at", "99"], "a seal through 99 lies behind the bound of partition 'b'"),
            (["b", "--at", "soon"], "soon"),
            (["b", "--at", "1e3"], "1e3"),
            (["b", "--before", "100"], "a seal before 100 lies behind the bound of partition 'b'"),
            (["b"], "--at"),
            (["b", "--at", "100", "--before", "101"], "--before"),
            ([], "PARTITION"),
        ],
    )
    def test_what_cannot_be_sealed_is_one_error_and_changes_nothing(
        self, arguments: list[str], what: str, gapless: Gapless, changed: Any
    ) -> None:
        before = contents(changed)
        ran = self.seal(gapless, *arguments)
        assert ran.exit_status == 2
        assert len(ran.lines) == 3
        assert what in ran.lines[0]
        assert contents(changed) == before

    @pytest.mark.parametrize("reason", ["", "  ", "..."])
    def test_a_reason_is_required(self, reason: str, gapless: Gapless, changed: Any) -> None:
        before = contents(changed)
        for arguments in (("seal", "b", "--at", "100"), ("rebuild",)):
            ran = gapless("epoch", *arguments, "--reason", reason)
            assert (ran.exit_status, len(ran.lines)) == (2, 3)
            assert "needs a reason" in ran.lines[0]
        assert contents(changed) == before

    def test_without_a_name_the_user_is_the_operator(
        self, gapless: Gapless, changed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("LOGNAME", "robin")
        ran = gapless("epoch", "seal", "b", "--at", "100", "--reason", "switched off", "--json")
        assert ran.document["operator"] == "robin"

    def test_the_command_that_explain_names_works_as_it_stands(
        self, gapless: Gapless, orders: Any, job: Path
    ) -> None:
        import shlex

        orders.begin("a", "-b c")
        orders.observe("a")
        (line,) = [one for one in gapless("explain").lines if one.startswith("  command: gapless epoch seal")]
        words = shlex.split(line.removeprefix("  command: gapless "))
        words[words.index("...")] = "100"
        words[words.index("...")] = "switched off"
        ran = gapless(*words)
        assert ran.exit_status == 0, ran.err


class TestRebuild:
    def test_a_new_lineage_begins_and_the_old_one_stays_readable(
        self, gapless: Gapless, changed: Any
    ) -> None:
        ran = gapless("epoch", "rebuild", "--reason", "ids were wrong", "--operator", "kim", *STORE, "--json")
        assert (ran.exit_status, ran.err) == (0, "")
        document = ran.document
        superseded = document["superseded"]
        assert (document["lineage"], document["dry_run"], document["differences"]) == (2, False, [])
        assert (superseded["lineage"], superseded["membership_epoch"]) == (1, 1)
        assert superseded["frontier"]["position"] == "100"
        assert (superseded["reason"], superseded["operator"]) == ("ids were wrong", "kim")

        status = gapless("status", "--json").document
        assert (status["lineage"], status["frontier"]) == (2, None)
        assert status["withheld"]["code"] == "not_started"
        assert status["superseded"] == [superseded]
        assert (
            "  superseded: lineage 1, complete through 100, certified; rebuilt: ids were wrong"
            in gapless("status").lines
        )

    def test_the_old_files_are_listed_under_their_lineage_only(self, gapless: Gapless, changed: Any) -> None:
        old = gapless("dataset", "--json").document
        assert gapless("epoch", "rebuild", "--reason", "ids were wrong", *STORE).exit_status == 0
        assert gapless("dataset", "--json").document == {**old, "lineage": 2, "files": [], "rows": 0}
        assert gapless("dataset", "--lineage", "1", "--json").document == old
        assert "lineage 1, superseded" in gapless("dataset", "--lineage", "1").lines[0]
        through = gapless("dataset", "--lineage", "1", "--through", "100", "--json")
        assert [file["partition"] for file in through.document["files"]] == ["a", "b"]
        assert gapless("dataset", "--lineage", "1", "--through", "101").exit_status == 3
        assert gapless("dataset", "--through", "100").exit_status == 3
        missing = gapless("dataset", "--lineage", "3")
        assert (missing.exit_status, len(missing.lines)) == (2, 3)
        assert gapless("dataset", "--lineage", "1", "--vacuum").exit_status == 2

    def test_violations_of_a_superseded_lineage_no_longer_count(self, gapless: Gapless, changed: Any) -> None:
        changed.violate("a")
        assert gapless("status", "--json").document["frontier"]["violated"] is True
        assert ", violated by the source" in gapless("status").lines[0]
        assert gapless("violations", "--exit-code").exit_status == 5
        assert gapless("status", "--exit-code").exit_status == 5

        assert gapless("epoch", "rebuild", "--reason", "it broke its promise", *STORE).exit_status == 0
        document = gapless("status", "--json").document
        assert document["counts"]["violations"] == 0
        assert document["superseded"][0]["frontier"]["violated"] is True
        assert gapless("status", "--exit-code").exit_status == 3
        ran = gapless("violations", "--exit-code", "--json")
        assert (ran.exit_status, ran.document["violations"][0]["lineage"]) == (0, 1)
        assert "(lineage 1, superseded)" in gapless("violations").err

    def test_the_identity_of_the_job_is_taken_over(self, gapless: Gapless, changed: Any, job: Path) -> None:
        from gapless.plan import scope_identity
        from gapless_pipelines.job import load_job

        identity = scope_identity(load_job(job).source())
        before = contents(changed)
        ran = gapless("epoch", "rebuild", "orders.yaml", "--reason", "new path", "--dry-run", "--json")
        assert ran.exit_status == 0, ran.err
        given = {one["key"]: one["given"] for one in ran.document["differences"]}
        assert given["path"] == '"/partitions/{partition.id}/events"'
        assert ran.document["dry_run"] is True
        assert contents(changed) == before

        ran = gapless("epoch", "rebuild", "--reason", "new path")
        assert ran.exit_status == 0, ran.err
        assert '  path was "/orders", is "/partitions/{partition.id}/events"' in ran.lines
        assert changed.store.identity_differences(identity) == []
        assert changed.store.register_scope(identity).lineage == 2

    def test_what_has_read_nothing_is_not_rebuilt(self, gapless: Gapless, changed: Any) -> None:
        assert gapless("epoch", "rebuild", "--reason", "once", *STORE).exit_status == 0
        before = contents(changed)
        for more in ([], ["--dry-run"]):
            ran = gapless("epoch", "rebuild", "--reason", "twice", *STORE, *more)
            assert (ran.exit_status, len(ran.lines)) == (2, 3)
            assert "there is nothing to rebuild" in ran.lines[0]
        assert contents(changed) == before

    def test_another_domain_needs_another_scope(self, gapless: Gapless, changed: Any, job: Path) -> None:
        job.write_text(job.read_text().replace("{type: integer}", "{type: text}"), encoding="utf-8")
        ran = gapless("epoch", "rebuild", "--reason", "new path")
        assert (ran.exit_status, len(ran.lines)) == (2, 3)
        assert "the domain of scope 'orders' cannot change" in ran.lines[0]


def test_who_rebuilt_and_why_is_kept(gapless: Gapless, changed: Any) -> None:
    gapless("epoch", "rebuild", "--reason", "ids were wrong", "--operator", "lee", *STORE)
    (ended,) = changed.store.snapshot("orders").superseded
    assert (ended.reason, ended.operator, ended.frontier) == ("ids were wrong", "lee", Bound.through(100))


@pytest.mark.parametrize("command", ["show", "cutover"])
def test_an_unknown_scope_names_the_known_ones(command: str, gapless: Gapless, changed: Any) -> None:
    ran = gapless("epoch", command, *STORE, "--scope", "order")
    assert (ran.exit_status, len(ran.lines)) == (2, 3)
    assert "scopes of this store: orders" in ran.lines[2]
