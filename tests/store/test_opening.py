"""Opening a store: what is refused changes nothing, and what is there is opened fast."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from gapless.errors import StoreBusy, StoreError, StoreNewer, StoreUnreadable, StoreUnwritable
from gapless.store import open_store


def path_of(url):
    return Path(url.removeprefix("sqlite:///"))


def test_a_store_is_created_once_and_found_again(store_url, kit):
    with open_store(store_url, create=True) as store:
        store.register_scope(kit.identity())
    with open_store(store_url, create=True) as store:
        assert store.scopes() == ["orders"]
    with open_store(store_url) as store:
        assert store.scopes() == ["orders"]


def test_closing_twice_is_once(store_url):
    store = open_store(store_url, create=True)
    store.close()
    store.close()


def test_without_create_nothing_is_created(sqlite_url, postgres_url):
    with pytest.raises(StoreUnreadable, match="no store at this path"):
        open_store(sqlite_url)
    assert not path_of(sqlite_url).exists()
    with pytest.raises(StoreUnreadable, match="no gapless store yet"):
        open_store(postgres_url)
    with pytest.raises(StoreUnreadable, match="no gapless store yet"):
        open_store(postgres_url, readonly=True)


@pytest.mark.parametrize("readonly", [True, False])
def test_an_empty_file_is_no_store_until_it_is_created(sqlite_url, readonly):
    path_of(sqlite_url).touch()
    with pytest.raises(StoreUnreadable, match="no gapless store yet"):
        open_store(sqlite_url, readonly=readonly)
    assert path_of(sqlite_url).read_bytes() == b""
    with open_store(sqlite_url, create=True) as store:
        assert store.scopes() == []


@pytest.mark.parametrize("create", [True, False])
def test_a_file_that_is_no_database_is_refused_as_it_is(sqlite_url, create):
    path_of(sqlite_url).write_bytes(b"id,position\n1,2\n" * 100)
    with pytest.raises(StoreUnreadable, match="not a SQLite database"):
        open_store(sqlite_url, create=create)
    assert path_of(sqlite_url).read_bytes() == b"id,position\n1,2\n" * 100


@pytest.mark.parametrize("create", [True, False])
def test_another_applications_sqlite_database_is_refused_as_it_is(sqlite_url, create):
    with closing(sqlite3.connect(path_of(sqlite_url))) as other:
        other.execute("CREATE TABLE conversations (id INTEGER PRIMARY KEY, body TEXT)")
        other.execute("INSERT INTO conversations VALUES (1, 'hello')")
        other.commit()
    before = path_of(sqlite_url).read_bytes()
    with pytest.raises(StoreUnreadable, match="not a gapless store: it holds conversations"):
        open_store(sqlite_url, create=create)
    assert path_of(sqlite_url).read_bytes() == before
    assert os.listdir(path_of(sqlite_url).parent) == [path_of(sqlite_url).name]


def test_a_postgresql_schema_is_shared_with_other_applications(postgres_url, kit):
    engine = sa.create_engine(
        postgres_url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool
    )
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE scope (id int); INSERT INTO scope VALUES (7)")
    with open_store(postgres_url, create=True) as store:
        store.register_scope(kit.identity())
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT id FROM scope").scalar() == 7
    engine.dispose()


@pytest.mark.parametrize("options", [{"create": True}, {}, {"readonly": True}], ids=str)
def test_a_store_of_a_newer_gapless_is_refused_as_it_is(scene, options):
    scene.sql("UPDATE gapless_schema_version SET version_num = '0002'")
    scene.sql("DROP TABLE gapless_journal")
    with pytest.raises(StoreNewer, match="schema 0002, this gapless knows 0001") as refused:
        scene.another(**options)
    assert "upgrade gapless" in refused.value.remedy
    with scene.connection() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM gapless_schema_version").scalar() == "0002"
        assert "gapless_journal" not in sa.inspect(connection).get_table_names()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DROP TABLE gapless_promotion", "tables are missing: gapless_promotion"),
        ("DROP TABLE gapless_schema_version", "gapless_schema_version is missing"),
        ("DELETE FROM gapless_schema_version", "schema version reads ''"),
        ("UPDATE gapless_schema_version SET version_num = 'abc'", "schema version reads 'abc'"),
    ],
)
@pytest.mark.parametrize("create", [True, False])
def test_a_damaged_store_is_refused_and_not_repaired(scene, damage, said, create):
    scene.sql(damage)
    with pytest.raises(StoreUnreadable, match=said):
        scene.another(create=create)
    with scene.connection() as connection:
        assert len(
            [name for name in sa.inspect(connection).get_table_names() if name.startswith("gapless_")]
        ) in (11, 12)


def test_a_column_that_is_missing_is_found_when_it_is_needed(scene):
    scene.sql("ALTER TABLE gapless_scope DROP COLUMN cap")
    with pytest.raises(StoreUnreadable, match="the store is damaged"):
        scene.store.scope("orders")


def test_a_corrupted_file_is_damaged(sqlite_scene):
    sqlite_scene.members(*(f"p{n}" for n in range(200)))
    sqlite_scene.close()
    path = path_of(sqlite_scene.url)
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 200] = b"\xa5" * 200
    path.write_bytes(content)
    with pytest.raises(StoreUnreadable, match="damaged"):
        with open_store(sqlite_scene.url) as store:
            store.snapshot("orders")


def test_a_missing_folder_and_a_folder_are_no_store(tmp_path):
    with pytest.raises(StoreUnreadable, match="does not exist") as refused:
        open_store(f"sqlite:///{tmp_path}/missing/progress.db", create=True)
    assert refused.value.remedy.startswith("mkdir -p")
    with pytest.raises(StoreUnreadable, match="a folder is no store"):
        open_store(f"sqlite:///{tmp_path}", create=True)


@pytest.mark.parametrize("name", ["with a space.db", "100%25.db", "hash#tag.db", "ünïcode.db"])
def test_a_file_may_have_any_name(tmp_path, name):
    with open_store(f"sqlite:///{tmp_path}/{name}", create=True):
        pass
    assert os.listdir(tmp_path) == [name]


def test_reading_only_refuses_to_write_and_sees_what_others_write(scene, kit):
    reader = scene.another(readonly=True)
    with pytest.raises(StoreUnwritable, match="reading only"):
        reader.begin_run("orders", "run", "local")
    (row,) = scene.members("a")
    scene.advance(row, 10)
    scene.publish()
    assert reader.snapshot("orders").chains[0].sequence == 1
    assert len(list(reader.promotions("orders"))) == 1
    with pytest.raises(StoreUnwritable, match="reading only"):
        reader.register_scope(kit.identity(scope="new"))


def test_the_database_itself_refuses_to_write_where_only_reading_was_asked_for(scene):
    reader = scene.another(readonly=True)
    reader._database.readonly = False
    with pytest.raises(StoreUnwritable):
        reader.begin_run("orders", "run", "local")


def test_reading_only_works_where_nobody_else_has_the_file_open(sqlite_scene):
    """The write-ahead log is gone with its last writer; a reader comes back to the file all the same."""
    sqlite_scene.members("a")
    sqlite_scene.close()
    path = path_of(sqlite_scene.url)
    assert os.listdir(path.parent) == [path.name]
    with open_store(sqlite_scene.url, readonly=True) as reader:
        assert len(reader.snapshot("orders").chains) == 1


def test_a_store_is_not_created_for_reading_only(sqlite_url):
    with pytest.raises(ValueError, match="reading only"):
        open_store(sqlite_url, create=True, readonly=True)


def test_a_file_that_may_not_be_written_is_refused_for_writing_and_still_read(sqlite_scene, unprivileged):
    sqlite_scene.close()
    path = path_of(sqlite_scene.url)
    path.chmod(0o444)
    with unprivileged(path.parent):
        with open_store(sqlite_scene.url, readonly=True) as reader:
            assert reader.scopes() == ["orders"]
        with open_store(sqlite_scene.url) as store:
            with pytest.raises(StoreUnwritable, match="cannot be written"):
                store.begin_run("orders", "run", "local")
    with open_store(sqlite_scene.url) as store:
        assert store.snapshot("orders").run is None


def test_a_store_in_a_folder_that_may_not_be_written_is_read_while_its_writer_is_there(
    sqlite_scene, unprivileged
):
    """SQLite's readers need the files its writer keeps beside the store, and cannot make them in such a folder."""
    sqlite_scene.members("a")
    folder = path_of(sqlite_scene.url).parent
    with unprivileged(folder, writable=False):
        with open_store(sqlite_scene.url, readonly=True) as reader:
            assert len(reader.snapshot("orders").chains) == 1
    sqlite_scene.close()
    with unprivileged(folder, writable=False):
        with pytest.raises(StoreUnreadable, match="cannot even be read") as refused:
            open_store(sqlite_scene.url, readonly=True)
    assert "-wal and -shm" in refused.value.remedy


def test_a_folder_that_may_not_be_written_is_refused_and_gets_no_file(tmp_path, unprivileged):
    folder = tmp_path / "readonly"
    folder.mkdir()
    with unprivileged(folder, writable=False):
        with pytest.raises(StoreError, match="cannot be opened") as refused:
            open_store(f"sqlite:///{folder}/progress.db", create=True)
    assert "write the file and its folder" in refused.value.remedy
    assert os.listdir(folder) == []


def test_many_processes_may_create_a_store_at_once(store_url, kit):
    def create():
        with open_store(store_url, create=True) as store:
            return store.scopes()

    assert kit.at_once([create] * 6) == [[]] * 6


def test_a_lock_that_is_held_too_long_is_busy_and_changes_nothing(scene, monkeypatch, kit):
    store = scene.another()
    if scene.sqlite:
        with store._database.bare() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout=1")
    else:
        with store._database.bare() as connection:
            connection.exec_driver_sql("SET lock_timeout = '1ms'")
            connection.commit()
    (task,) = scene.observe("a").tasks
    with scene.connection() as other:
        other.execute(sa.text("UPDATE gapless_chain SET fencing_token = 9"))
        with pytest.raises(StoreBusy, match="did not finish in time"):
            store.take(task.chain, 1)
    assert store.take(task.chain, 1).fencing_token == 1


def test_an_open_store_is_opened_again_without_alembic(sqlite_scene):
    code = (
        "import sys; from gapless.store import open_store\n"
        f"with open_store({sqlite_scene.url!r}, create=True) as store: store.scopes()\n"
        f"with open_store({sqlite_scene.url!r}, readonly=True) as store: store.scopes()\n"
        "print([name for name in ('alembic', 'apache_beam', 'psycopg', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
