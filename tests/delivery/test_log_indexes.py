"""The two indexes: built without blocking, recognised where their equals are there, named where they are invalid."""

import threading
import time

import pytest
import sqlalchemy as sa
from message_tables import add, create_table, installed, open_log, run
from sqlalchemy.engine import Engine

from gapless.delivery import MessageLog
from gapless.errors import MessageLogError, UnsafeSetup

PREDICATE = "(status IN ('delivered', 'failed')) IS NOT TRUE"


def test_installing_twice_builds_once(log_engine: Engine) -> None:
    create_table(log_engine)
    log = open_log(log_engine, log_engine.dialect.name)
    first, second = log.install(), log.install()
    assert len(first.built) == 2
    assert len(first.tables) == 3
    assert second.built == second.tables == ()
    assert second.indexes == first.indexes


def test_a_log_that_is_not_installed_says_so_and_creates_nothing(log_engine: Engine) -> None:
    create_table(log_engine)
    log = open_log(log_engine, log_engine.dialect.name)
    with pytest.raises(MessageLogError, match="not installed") as caught:
        log.frontier("a")
    assert "install" in caught.value.remedy
    assert sa.inspect(log_engine).get_table_names() == ["conversations"] or "gapless" not in str(
        sa.inspect(log_engine).get_table_names()
    )


SPELT_OTHERWISE = {
    "sqlite": "( status  in ('delivered','failed') )  is not TRUE",
    "postgresql": "( \"status\"  in ('failed','delivered') )  is not true",
}


@pytest.mark.parametrize("as_we_write_it", [True, False])
def test_equal_indexes_of_the_users_are_recognised(log_engine: Engine, as_we_write_it: bool) -> None:
    predicate = PREDICATE if as_we_write_it else SPELT_OTHERWISE[log_engine.dialect.name]
    create_table(log_engine)
    run(log_engine, f"CREATE INDEX mine_open ON conversations (channel_key, id) WHERE {predicate}")
    run(log_engine, "CREATE UNIQUE INDEX mine_all ON conversations (channel_key, id)")
    log = open_log(log_engine, log_engine.dialect.name)
    done = log.install()
    assert done.built == ()
    assert (done.indexes.open, done.indexes.all) == ("mine_open", "mine_all")
    add(log_engine, "a", ["delivered", "pending"])
    assert log.frontier("a").through == 1


def test_an_index_that_sqlite_does_not_see_to_be_equal_is_not_taken_for_it(sqlite_engine: Engine) -> None:
    """To SQLite `true` is another word than `TRUE`."""
    create_table(sqlite_engine)
    run(
        sqlite_engine,
        f"CREATE INDEX mine ON conversations (channel_key, id) WHERE {PREDICATE.replace('TRUE', 'true')}",
    )
    assert len(open_log(sqlite_engine, "sqlite").install().built) == 2


@pytest.mark.parametrize(
    ("ddl", "kept"),
    [
        ("CREATE INDEX mine ON conversations (channel_key, id DESC)", ""),
        ("CREATE INDEX mine ON conversations (id, channel_key)", ""),
        ("CREATE INDEX mine ON conversations (channel_key)", ""),
        ("CREATE INDEX mine ON conversations (channel_key, id) WHERE channel_key <> ''", ""),
        (
            "CREATE INDEX mine ON conversations (channel_key, id) WHERE status NOT IN ('delivered', 'failed')",
            "",
        ),
        (
            "CREATE INDEX mine ON conversations (channel_key, id) WHERE (status IN ('delivered')) IS NOT TRUE",
            "",
        ),
        (f"CREATE INDEX mine ON conversations (channel_key, id, status) WHERE {PREDICATE}", "open"),
        ("CREATE INDEX mine ON conversations (channel_key, id, body)", "all"),
    ],
)
def test_an_index_that_is_not_equal_is_not_taken_for_it(log_engine: Engine, ddl: str, kept: str) -> None:
    create_table(log_engine)
    run(log_engine, ddl)
    done = open_log(log_engine, log_engine.dialect.name).install()
    assert len(done.built) == (1 if kept else 2)
    assert (done.indexes.open == "mine", done.indexes.all == "mine") == (kept == "open", kept == "all")


def test_the_collation_of_an_index_matters(log_engine: Engine) -> None:
    create_table(log_engine)
    collation = "NOCASE" if log_engine.dialect.name == "sqlite" else '"C"'
    run(log_engine, f"CREATE INDEX mine ON conversations (channel_key COLLATE {collation}, id)")
    assert len(open_log(log_engine, log_engine.dialect.name).install().built) == 2


@pytest.mark.parametrize("status_type", ["varchar(20)", "fate", "smallint", "domain_of_text"])
def test_equal_indexes_are_recognised_whatever_the_type_of_the_status(
    postgres_engine: Engine, status_type: str
) -> None:
    run(postgres_engine, "CREATE TYPE fate AS ENUM ('pending', 'delivered', 'failed')")
    run(postgres_engine, "CREATE DOMAIN domain_of_text AS varchar(20)")
    create_table(postgres_engine, status_type=status_type)
    terminal: tuple[object, ...] = (-1, 2) if status_type == "smallint" else ("delivered", "failed")
    listed = "-1, 2" if status_type == "smallint" else "'delivered', 'failed'"
    run(
        postgres_engine,
        f"CREATE INDEX mine ON conversations (channel_key, id) WHERE (status IN ({listed})) IS NOT TRUE",
    )
    done = open_log(postgres_engine, "postgresql", terminal=terminal).install()
    assert done.indexes.open == "mine"


def test_one_terminal_status_makes_an_equal_index_too(log_engine: Engine) -> None:
    create_table(log_engine)
    run(
        log_engine,
        "CREATE INDEX mine ON conversations (channel_key, id) WHERE (status IN ('done')) IS NOT TRUE",
    )
    assert open_log(log_engine, log_engine.dialect.name, terminal=("done",)).install().indexes.open == "mine"


def test_an_invalid_index_is_found_and_named(postgres_engine: Engine) -> None:
    log = installed(postgres_engine)
    name = log.install().indexes.open
    run(
        postgres_engine,
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = CAST(:name AS regclass)",
        name=name,
    )
    for ask in (log.install, log.check, open_log(postgres_engine, "postgresql").shards):
        with pytest.raises(UnsafeSetup, match=f'"{name}" is invalid') as caught:
            ask()
        assert caught.value.setup == "invalid_index"
        assert 'DROP INDEX CONCURRENTLY "' in caught.value.remedy


def test_a_build_that_fails_leaves_nothing_that_looks_right(postgres_engine: Engine) -> None:
    """A build is cancelled in the middle: while a writer is open it waits, and then it is given up."""
    create_table(postgres_engine)
    add(postgres_engine, "a", ["pending"])
    log = open_log(postgres_engine, "postgresql")
    writer = postgres_engine.execution_options(isolation_level="READ COMMITTED").connect()
    writer.execute(sa.text("INSERT INTO conversations (channel_key) VALUES ('a')"))
    failed: list[BaseException] = []

    def install() -> None:
        try:
            log.install()
        except MessageLogError as error:
            failed.append(error)

    thread = threading.Thread(target=install)
    thread.start()
    cancel = (
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
        " WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'"
        " AND application_name = current_setting('application_name') AND pid <> pg_backend_pid()"
    )
    deadline = time.monotonic() + 30
    while not run(postgres_engine, cancel) and time.monotonic() < deadline:
        thread.join(0.05)
    thread.join(30)
    writer.rollback()
    writer.close()
    assert len(failed) == 1
    with pytest.raises(UnsafeSetup, match="is invalid"):
        log.install()


def test_building_blocks_no_insert(postgres_engine: Engine) -> None:
    """While the build waits for an open writer, others insert: a plain CREATE INDEX would keep them out."""
    create_table(postgres_engine)
    add(postgres_engine, "a", ["pending"] * 100)
    log = open_log(postgres_engine, "postgresql")
    writer = postgres_engine.execution_options(isolation_level="READ COMMITTED").connect()
    writer.execute(sa.text("INSERT INTO conversations (channel_key) VALUES ('a')"))
    thread = threading.Thread(target=log.install)
    thread.start()
    waiting = (
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%'"
        " AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()"
    )
    deadline = time.monotonic() + 30
    while not run(postgres_engine, waiting) and time.monotonic() < deadline:
        thread.join(0.02)
    with postgres_engine.connect() as connection:
        connection.execute(sa.text("SET statement_timeout = '5s'"))
        connection.execute(sa.text("INSERT INTO conversations (channel_key) VALUES ('b')"))
    assert thread.is_alive(), "the build was waiting while the insert went through"
    writer.commit()
    writer.close()
    thread.join(30)
    assert log.shards() == ["a", "b"]


def test_two_that_install_at_the_same_time_end_with_one_installation(log_engine: Engine) -> None:
    create_table(log_engine)
    add(log_engine, "a", ["delivered"] * 50)
    logs = [open_log(log_engine, log_engine.dialect.name) for _ in range(4)]
    start = threading.Barrier(len(logs))
    failed: list[str] = []

    def install(log: MessageLog) -> None:
        start.wait()
        try:
            log.install()
        except MessageLogError as error:
            failed.append(error.what)

    threads = [threading.Thread(target=install, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [what for what in failed if "another process is building" not in what] == []
    assert len(failed) < len(logs)
    assert logs[0].install().built == ()
    assert logs[0].claim("a") is not None


def test_a_log_of_other_words_is_told_apart(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered", "cancelled"])
    claimed = log.claim("a")
    assert claimed is not None
    log.cover(claimed)
    other = open_log(log_engine, log_engine.dialect.name, terminal=("delivered", "failed", "cancelled"))
    for ask in (other.install, other.shards):
        with pytest.raises(UnsafeSetup, match="another declaration: terminal was") as caught:
            ask()
        assert caught.value.setup == "other_declaration"
    assert len(other.install(redeclare=True).built) == 1, "the index on open rows is another one"
    assert (other.coverage("a"), other.frontier("a").through) == (1, 2)
    with pytest.raises(UnsafeSetup, match="another declaration"):
        open_log(log_engine, log_engine.dialect.name).frontier("a")


def test_the_order_of_the_statuses_is_no_other_declaration(log_engine: Engine) -> None:
    installed(log_engine)
    other = open_log(log_engine, log_engine.dialect.name, terminal=("failed", "delivered"))
    assert other.install().tables == ()
    assert other.shards() == []


def test_a_coverage_from_elsewhere_is_refused(log_engine: Engine) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"])
    run(log_engine, "DELETE FROM gapless_message_log")
    with pytest.raises(UnsafeSetup, match="nothing says that it belongs to this log"):
        log.install()
    with pytest.raises(MessageLogError, match="not installed"):
        open_log(log_engine, log_engine.dialect.name).frontier("a")


def test_coverage_above_every_id_given_out_is_refused_at_the_start_and_found_later(
    log_engine: Engine,
) -> None:
    log = installed(log_engine)
    add(log_engine, "a", ["delivered"])
    run(log_engine, "INSERT INTO gapless_coverage_conversations (shard, through) VALUES ('a', 100)")
    for ask in (log.watch, log.check, open_log(log_engine, log_engine.dialect.name).shards):
        with pytest.raises(UnsafeSetup) as caught:
            ask()
        assert caught.value.setup == "coverage_above_sequence"


def test_tables_of_a_newer_format_are_left_alone(log_engine: Engine) -> None:
    log = installed(log_engine)
    run(log_engine, "UPDATE gapless_message_log SET format = 2")
    with pytest.raises(UnsafeSetup, match="format 2"):
        log.install(redeclare=True)
    with pytest.raises(UnsafeSetup, match="format 2"):
        open_log(log_engine, log_engine.dialect.name).shards()


def test_two_logs_in_one_schema_keep_apart(log_engine: Engine) -> None:
    long = "conversations_" + "x" * 49
    installed(log_engine)
    for table in (long, long[:-1] + "y"):
        create_table(log_engine, table=table)
        assert len(open_log(log_engine, log_engine.dialect.name, table=table).install().tables) == 2
    names = sa.inspect(log_engine).get_table_names()
    assert len([name for name in names if name.startswith("gapless_coverage_")]) == 3


def test_a_role_that_may_not_create_changes_nothing(postgres_engine: Engine) -> None:
    create_table(postgres_engine)
    schema = run(postgres_engine, "SELECT current_schema()")[0][0]
    run(postgres_engine, "DROP ROLE IF EXISTS gapless_reader")
    run(postgres_engine, "CREATE ROLE gapless_reader LOGIN")
    try:
        run(postgres_engine, f'GRANT USAGE ON SCHEMA "{schema}" TO gapless_reader')
        run(postgres_engine, "GRANT SELECT ON conversations, conversations_id_seq TO gapless_reader")
        reader = sa.create_engine(postgres_engine.url.set(username="gapless_reader"))
        log = open_log(reader, "postgresql")
        with pytest.raises(MessageLogError, match="may build indexes") as caught:
            log.install()
        assert caught.value.exit_status == 2
        assert "gapless" not in str(sa.inspect(postgres_engine).get_table_names(schema))
        run(postgres_engine, f'GRANT CREATE ON SCHEMA "{schema}" TO gapless_reader')
        with pytest.raises(MessageLogError, match=r"only its owner .* may build indexes"):
            log.install()
        assert "gapless" not in str(sa.inspect(postgres_engine).get_table_names(schema))
        open_log(postgres_engine, "postgresql").install()
        run(postgres_engine, 'GRANT SELECT ON ALL TABLES IN SCHEMA "' + schema + '" TO gapless_reader')
        add(postgres_engine, "a", ["delivered", "pending"])
        assert log.frontier("a").through == 1, "who only asks needs SELECT alone"
        reader.dispose()
    finally:
        run(postgres_engine, f'REVOKE ALL ON ALL TABLES IN SCHEMA "{schema}" FROM gapless_reader')
        run(postgres_engine, f'REVOKE ALL ON ALL SEQUENCES IN SCHEMA "{schema}" FROM gapless_reader')
        run(postgres_engine, f'REVOKE ALL ON SCHEMA "{schema}" FROM gapless_reader')
        run(postgres_engine, "DROP ROLE gapless_reader")
