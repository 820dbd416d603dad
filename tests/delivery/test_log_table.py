"""A message log as declared, and as it is found on either database: wrong words are told apart before anything is created."""

import pytest
from sqlalchemy.engine import Engine

from gapless.delivery import LogTable
from gapless.errors import ConfigurationError, NotAMessageLog

SQLITE = "CREATE TABLE {table} (id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, status TEXT)"
POSTGRESQL = "CREATE TABLE {table} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, channel text NOT NULL, status text)"


def declared(engine: Engine, **words: object) -> LogTable:
    ids = "identity" if engine.dialect.name == "postgresql" else "autoincrement"
    given: dict[str, object] = {
        "table": "log",
        "shard": "channel",
        "terminal": ("delivered", "failed"),
        "ids": ids,
    }
    return LogTable(**{**given, **words})  # type: ignore[arg-type]


def create(engine: Engine, *statements: str) -> None:
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})


def create_log(engine: Engine, table: str = "log") -> None:
    create(engine, (POSTGRESQL if engine.dialect.name == "postgresql" else SQLITE).format(table=table))


def reflected(engine: Engine, **words: object):
    with engine.connect() as connection:
        return declared(engine, **words).reflect(connection)


def refused(engine: Engine, **words: object) -> str:
    with pytest.raises(NotAMessageLog) as caught:
        reflected(engine, **words)
    assert caught.value.exit_status == 2
    return str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"terminal": ()}, "no status is terminal"),
        ({"terminal": "delivered"}, "'delivered' is no tuple of statuses"),
        ({"terminal": ["delivered"]}, "is no tuple of statuses"),
        ({"terminal": ("delivered", "delivered")}, "a status is named twice"),
        ({"terminal": (None,)}, "None is no status"),
        ({"terminal": (True,)}, "True is no status"),
        ({"terminal": (2**63,)}, "9223372036854775808 is no status"),
        ({"terminal": ("a\0b",)}, "is no status"),
        ({"table": ""}, "'' is no name"),
        ({"id": "a\0b"}, "is no name"),
        ({"shard": "id"}, "need a column each"),
        ({"ids": "uuid"}, "'uuid' is no way to give out ids"),
    ],
)
def test_a_declaration_that_cannot_be_meant_is_refused_without_a_database(
    words: dict[str, object], said: str
) -> None:
    given: dict[str, object] = {"table": "log", "terminal": ("delivered",), "ids": "serial"}
    with pytest.raises(ConfigurationError) as caught:
        LogTable(**{**given, **words})  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_a_log_is_found_with_the_types_of_its_columns(log_engine: Engine) -> None:
    create_log(log_engine)
    log = reflected(log_engine)
    assert (log.table, log.id, log.shard, log.status) == ("log", "id", "channel", "status")
    assert log.shard_kind == "text"
    assert log.shard_ddl.casefold() == "text"
    assert log.open_sql == """("status" IN ('delivered', 'failed')) IS NOT TRUE"""
    assert log.where == f"message log {log.schema}.log"
    assert (log.sequence is None) == (log.dialect == "sqlite")


def test_names_that_only_quotes_can_write_are_found(log_engine: Engine) -> None:
    create_log(log_engine, '"Der ""Log"" 50%:x"')
    assert reflected(log_engine, table='Der "Log" 50%:x').table_sql.endswith('."Der ""Log"" 50%:x"')


def test_a_wrong_name_is_answered_with_the_likely_one(log_engine: Engine) -> None:
    create_log(log_engine)
    assert "there is no table lgo\n" in refused(log_engine, table="lgo")
    assert "did you mean log? there is: log" in refused(log_engine, table="lgo")
    assert "there is no column stauts\n" in refused(log_engine, status="stauts")
    assert "did you mean status? there are: channel, id, status" in refused(log_engine, status="stauts")
    assert refused(log_engine, schema="elsewhere").startswith("there is no ")


def test_a_view_is_refused(log_engine: Engine) -> None:
    create_log(log_engine)
    create(log_engine, "CREATE VIEW seen AS SELECT * FROM log")
    assert "seen is a view" in refused(log_engine, table="seen")


def test_a_status_that_a_check_constraint_excludes_is_unknown(log_engine: Engine) -> None:
    create_log(log_engine)
    create(
        log_engine,
        "DROP TABLE log",
        (POSTGRESQL if log_engine.dialect.name == "postgresql" else SQLITE)
        .format(table="log")
        .replace("status text", "status text CHECK (status IN ('delivered', 'failed', '50% :done'))")
        .replace("status TEXT", "status TEXT CHECK (status IN ('delivered', 'failed', '50% :done'))"),
    )
    assert reflected(log_engine, terminal=("delivered", "50% :done")).terminal_sql == (
        "'delivered'",
        "'50% :done'",
    )
    said = refused(log_engine, terminal=("delivered", "faild"))
    assert "no row can have the terminal status 'faild'" in said
    assert "50% :done" in said


def test_a_check_constraint_on_other_columns_too_excludes_no_status(log_engine: Engine) -> None:
    create_log(log_engine)
    create(
        log_engine,
        "DROP TABLE log",
        (POSTGRESQL if log_engine.dialect.name == "postgresql" else SQLITE)
        .format(table="log")
        .replace(", status ", ", reason text, CHECK (status <> 'failed' OR reason IS NOT NULL), status ")
        if log_engine.dialect.name == "postgresql"
        else SQLITE.format(table="log")[:-1]
        + ", reason TEXT, CHECK (status <> 'failed' OR reason IS NOT NULL))",
    )
    assert reflected(log_engine).terminal_sql == ("'delivered'", "'failed'")


def test_texts_are_no_integers(log_engine: Engine) -> None:
    create_log(log_engine)
    assert "terminal status 2 is no value of column status" in refused(log_engine, terminal=(2,))


def test_each_way_to_give_out_ids_belongs_to_its_database(log_engine: Engine) -> None:
    create_log(log_engine)
    other = "autoincrement" if log_engine.dialect.name == "postgresql" else "identity"
    assert f"ids: {other} is a way of " in refused(log_engine, ids=other)


# SQLite


def test_sqlite_finds_names_in_any_case_and_spells_them_as_they_are(sqlite_engine: Engine) -> None:
    create(
        sqlite_engine,
        "CREATE TABLE Log (Id INTEGER PRIMARY KEY AUTOINCREMENT, Channel TEXT NOT NULL, Status TEXT)",
    )
    log = reflected(sqlite_engine)
    assert (log.table, log.id, log.shard, log.status) == ("Log", "Id", "Channel", "Status")


@pytest.mark.parametrize(
    ("column", "ddl"),
    [
        ("TEXT COLLATE NOCASE", 'TEXT COLLATE "NOCASE"'),
        ("VARCHAR(20) COLLATE RTRIM", 'VARCHAR(20) COLLATE "RTRIM"'),
        ("CHAR(36)", "CHAR(36)"),
        ("BIGINT", "BIGINT"),
    ],
)
def test_sqlite_tells_the_collation_of_the_shards(sqlite_engine: Engine, column: str, ddl: str) -> None:
    create(
        sqlite_engine,
        f"CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, channel {column} NOT NULL, status TEXT)",
        "CREATE INDEX by_channel ON log (channel COLLATE BINARY, id)",
    )
    assert reflected(sqlite_engine).shard_ddl == ddl


@pytest.mark.parametrize("type_", ["UUID", "BLOB", "", "NUMERIC", "REAL"])
def test_sqlite_refuses_shards_that_it_would_not_keep_as_they_are(sqlite_engine: Engine, type_: str) -> None:
    create(
        sqlite_engine,
        f"CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, channel {type_} NOT NULL, status TEXT)",
    )
    assert "keeps neither texts nor integers as they are" in refused(sqlite_engine)


def test_sqlite_takes_statuses_as_integers(sqlite_engine: Engine) -> None:
    create(
        sqlite_engine,
        "CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, status INTEGER)",
    )
    assert reflected(sqlite_engine, terminal=(2, -3)).open_sql == '("status" IN (2, -3)) IS NOT TRUE'
    assert "give terminal statuses as integers" in refused(sqlite_engine, terminal=("2",))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("id TEXT PRIMARY KEY, channel TEXT, status TEXT", "column id is TEXT, not INTEGER"),
        ("id BIGINT PRIMARY KEY, channel TEXT, status TEXT", "column id is BIGINT, not INTEGER"),
        (
            "id INTEGER PRIMARY KEY, channel TEXT, status BLOB",
            "column status is BLOB, which is no type of a status",
        ),
    ],
)
def test_sqlite_refuses_other_types(sqlite_engine: Engine, columns: str, said: str) -> None:
    create(sqlite_engine, f"CREATE TABLE log ({columns})")
    assert said in refused(sqlite_engine)


# PostgreSQL


@pytest.mark.parametrize("type_", ["smallint", "integer", "bigint"])
def test_postgresql_takes_every_integer_as_an_id(postgres_engine: Engine, type_: str) -> None:
    create(postgres_engine, POSTGRESQL.format(table="log").replace("bigint", type_))
    assert reflected(postgres_engine).id_ddl == type_


@pytest.mark.parametrize(
    ("column", "kind", "ddl"),
    [
        ("text", "text", "text"),
        ('varchar(40) COLLATE "C"', "text", 'character varying(40) COLLATE pg_catalog."C"'),
        ("uuid", "uuid", "uuid"),
        ("smallint", "integer", "smallint"),
        ("channel_name", "text", "channel_name"),
    ],
)
def test_postgresql_tells_the_type_of_the_shards(
    postgres_engine: Engine, column: str, kind: str, ddl: str
) -> None:
    create(
        postgres_engine,
        "CREATE DOMAIN channel_name AS varchar(40)",
        POSTGRESQL.format(table="log").replace("channel text", f"channel {column}"),
    )
    log = reflected(postgres_engine)
    assert (log.shard_kind, log.shard_ddl) == (kind, ddl)


@pytest.mark.parametrize("type_", ["char(8)", "timestamptz", "jsonb", "numeric", "text[]"])
def test_postgresql_refuses_other_shards(postgres_engine: Engine, type_: str) -> None:
    create(postgres_engine, POSTGRESQL.format(table="log").replace("channel text", f"channel {type_}"))
    assert "which is no type of a shard" in refused(postgres_engine)


def test_an_enum_tells_which_statuses_there_are(postgres_engine: Engine) -> None:
    create(
        postgres_engine,
        "CREATE TYPE progress AS ENUM ('pending', 'delivered', 'failed')",
        POSTGRESQL.format(table="log").replace("status text", "status progress"),
    )
    assert reflected(postgres_engine).terminal_sql == ("'delivered'", "'failed'")
    said = refused(postgres_engine, terminal=("delivered", "faild"))
    assert "no row can have the terminal status 'faild'" in said
    assert "did you mean failed? there are: delivered, failed, pending" in said


def test_a_status_that_does_not_fit_the_column_is_unknown(postgres_engine: Engine) -> None:
    create(postgres_engine, POSTGRESQL.format(table="log").replace("status text", "status varchar(9)"))
    assert reflected(postgres_engine).terminal_sql == ("'delivered'", "'failed'")
    assert "the column takes 9 characters" in refused(postgres_engine, terminal=("undelivered",))


def test_an_integer_status_reaches_as_far_as_its_type(postgres_engine: Engine) -> None:
    create(postgres_engine, POSTGRESQL.format(table="log").replace("status text", "status smallint"))
    assert reflected(postgres_engine, terminal=(-(2**15), 2**15 - 1)).terminal_sql == ("-32768", "32767")
    assert "a smallint does not reach as far" in refused(postgres_engine, terminal=(2**15,))


def test_a_column_without_a_sequence_of_its_own_is_refused(postgres_engine: Engine) -> None:
    create(
        postgres_engine,
        "CREATE SEQUENCE log_ids",
        "CREATE TABLE log (id bigint PRIMARY KEY DEFAULT nextval('log_ids'), channel text NOT NULL, status text)",
    )
    said = refused(postgres_engine, ids="serial")
    assert "no sequence belongs to column id" in said
    assert "OWNED BY" in said
    create(postgres_engine, "ALTER SEQUENCE log_ids OWNED BY log.id")
    assert reflected(postgres_engine, ids="serial").sequence_sql.endswith(".log_ids")


@pytest.mark.parametrize(
    ("missing", "granted", "said"),
    [
        ("USAGE ON SCHEMA {schema}", [], 'GRANT USAGE ON SCHEMA "{schema}" TO "gapless_nobody"'),
        ("SELECT ON TABLE {schema}.log", ["USAGE ON SCHEMA {schema}"], 'GRANT SELECT ON "{schema}"."log"'),
        (
            "SELECT ON SEQUENCE {schema}.log_id_seq",
            ["USAGE ON SCHEMA {schema}", "SELECT ON TABLE {schema}.log"],
            "GRANT SELECT ON SEQUENCE {schema}.log_id_seq",
        ),
    ],
)
def test_a_missing_privilege_is_named_with_the_grant(
    postgres_engine: Engine, missing: str, granted: list[str], said: str
) -> None:
    create_log(postgres_engine)
    with postgres_engine.connect() as connection:
        schema = connection.exec_driver_sql("SELECT current_schema()").scalar_one()
        connection.exec_driver_sql("CREATE ROLE gapless_nobody")
        try:
            for privilege in granted:
                connection.exec_driver_sql(f"GRANT {privilege.format(schema=schema)} TO gapless_nobody")
            connection.exec_driver_sql("SET ROLE gapless_nobody")
            with pytest.raises(NotAMessageLog) as caught:
                declared(postgres_engine, schema=schema).reflect(connection)
            assert "role gapless_nobody may not read it" in str(caught.value)
            assert said.format(schema=schema) in str(caught.value)
            connection.exec_driver_sql("RESET ROLE")
            connection.exec_driver_sql(f"GRANT {missing.format(schema=schema)} TO gapless_nobody")
        finally:
            connection.exec_driver_sql("RESET ROLE")
            connection.exec_driver_sql("DROP OWNED BY gapless_nobody")
            connection.exec_driver_sql("DROP ROLE gapless_nobody")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE MATERIALIZED VIEW seen AS SELECT * FROM log", "seen is a materialized view"),
        ("CREATE SEQUENCE seen", "seen is a sequence"),
    ],
)
def test_postgresql_refuses_what_is_no_table(postgres_engine: Engine, statement: str, said: str) -> None:
    create_log(postgres_engine)
    create(postgres_engine, statement)
    assert said in refused(postgres_engine, table="seen")


def test_names_on_postgresql_are_exact(postgres_engine: Engine) -> None:
    create_log(postgres_engine)
    assert "did you mean log?" in refused(postgres_engine, table="Log")


def test_an_older_postgresql_is_refused(postgres_engine: Engine) -> None:
    create_log(postgres_engine)
    with postgres_engine.connect() as connection:
        connection.dialect.server_version_info = (14, 9)
        with pytest.raises(NotAMessageLog, match="PostgreSQL 14 is too old"):
            declared(postgres_engine).reflect(connection)


def test_another_database_is_refused() -> None:
    from sqlalchemy.dialects import mysql

    class Elsewhere:
        dialect = mysql.dialect()

    log = LogTable(table="log", terminal=("delivered",), ids="serial")
    with pytest.raises(NotAMessageLog, match="mysql is no database whose open writers gapless can follow"):
        log.reflect(Elsewhere())  # type: ignore[arg-type]
