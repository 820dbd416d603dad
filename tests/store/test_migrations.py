"""The migrations make exactly the tables that the code describes, in one transaction."""

import sqlite3
from contextlib import closing

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.pool import NullPool

from gapless.errors import StoreError
from gapless.store import open_store, schema, versions


@pytest.fixture
def migrated_url(store_url, monkeypatch):
    """A store that the migrations have made, step by step."""
    with monkeypatch.context() as patch:
        patch.setattr(versions, "create", versions.migrate)
        with open_store(store_url, create=True):
            pass
    return store_url


def test_the_migrations_make_what_the_code_describes(migrated_url):
    engine = sa.create_engine(migrated_url, poolclass=NullPool)
    with engine.connect() as connection:
        options = {
            "version_table": schema.VERSION_TABLE,
            "compare_type": True,
            "compare_server_default": False,
        }
        context = MigrationContext.configure(connection, opts=options)
        found = compare_metadata(context, schema.metadata)
    # Older versions of Alembic look for identity columns in SQLite, which has none.
    sqlite = engine.dialect.name == "sqlite"
    identities = [each for each in found if sqlite and each[0][0] == "modify_default"]
    assert [each for each in found if each not in identities] == []


def test_a_new_store_is_the_one_that_the_migrations_make(migrated_url, tmp_path):
    """To the letter, on SQLite, which keeps the words that made each table; Alembic compares the rest."""
    if not migrated_url.startswith("sqlite"):
        with open_store(migrated_url, create=True) as store:
            assert store.scopes() == []
        return
    new = f"sqlite:///{tmp_path}/new.db"
    with open_store(new, create=True):
        pass

    def words(url):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            rows = database.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
            version = database.execute(f"SELECT * FROM {schema.VERSION_TABLE}").fetchall()
        return {name: " ".join(sql.split()) for name, sql in rows}, version

    assert words(new) == words(migrated_url)


def test_partial_indexes_have_the_conditions_that_the_code_describes(scene):
    """Alembic does not compare conditions, and a plan that needs one would silently scan."""
    described = {index.name: index for table in schema.metadata.tables.values() for index in table.indexes}
    with scene.connection() as connection:
        if scene.sqlite:
            rows = connection.exec_driver_sql(
                "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            )
        else:
            rows = connection.exec_driver_sql(
                "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()"
            )
        made = {name: text for name, text in rows if name in described}
    assert made.keys() == described.keys()
    for name, index in described.items():
        condition = index.dialect_options["sqlite"]["where"]
        words = "" if condition is None else str(condition)
        _, _, behind = made[name].partition(" WHERE ")
        plain = behind.replace("(", "").replace(")", "").replace("::text", "")
        assert plain == words, name


def test_the_code_knows_the_last_migration():
    script = ScriptDirectory(str(versions.MIGRATIONS))
    assert script.get_heads() == [versions.HEAD]


def test_a_creation_that_fails_half_way_leaves_nothing(store_url, monkeypatch):
    """The last table cannot be made: then none of them is there, and the next attempt makes them all."""
    from alembic import op

    monkeypatch.setattr(versions, "create", versions.migrate)
    real = op.create_table

    def full_at_the_end(name, *columns, **options):
        if name == "gapless_journal":
            raise OSError("no more")
        return real(name, *columns, **options)

    monkeypatch.setattr(op, "create_table", full_at_the_end)
    with pytest.raises(OSError, match="no more"):
        open_store(store_url, create=True)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="no gapless store yet"):
        open_store(store_url)
    with open_store(store_url, create=True) as store:
        assert store.scopes() == []


def test_an_older_store_is_upgraded_where_asked_and_refused_where_not(store_url, monkeypatch, tmp_path):
    with open_store(store_url, create=True):
        pass
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    for step in (versions.MIGRATIONS / "versions").glob("*.py"):
        (folder / "versions" / step.name).write_text(step.read_text())
    (folder / "versions" / "r0002_more.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        "revision = '0002'\ndown_revision = '0001'\nbranch_labels = None\ndepends_on = None\n"
        "def upgrade():\n    op.add_column('gapless_scope', sa.Column('note', sa.Text()))\n"
    )
    monkeypatch.setattr(versions, "MIGRATIONS", folder)
    monkeypatch.setattr(versions, "HEAD", "0002")
    with pytest.raises(StoreError, match="older schema 0001") as refused:
        open_store(store_url)
    assert refused.value.remedy == "the next `gapless backfill` upgrades it"
    with open_store(store_url, create=True) as store:
        assert store.scopes() == []
    with open_store(store_url) as store:
        with store._database.bare() as connection:
            assert connection.exec_driver_sql("SELECT note FROM gapless_scope").all() == []
