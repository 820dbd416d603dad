"""The oracle itself: it passes what is true, and sees every single thing that is not."""

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from durable_claims import DOMAIN
from hostile_universe import Knobs
from truth_oracle import TruthOracle, Untrue, Watch

from gapless.progress import Bound

KNOBS = Knobs(seed=15, partitions=2, events=120, page=20)


@pytest.fixture(scope="module")
def finished(make_module_site):
    """A backfill that came to its end."""
    site = make_module_site(knobs=KNOBS, target_rows=40)
    site.run_to_the_end()
    return site


class Copy:
    """A copy of the store, to be spoiled; files are copied before they are."""

    def __init__(self, site, folder: Path) -> None:
        self.path = folder / "copy.db"
        with (
            closing(sqlite3.connect(site.folder / "progress.db")) as source,
            closing(sqlite3.connect(self.path)) as copy,
        ):
            source.backup(copy)
        self.folder = folder
        self.oracle = TruthOracle(f"sqlite:///{self.path}", "orders", site.oracle.universe)

    def sql(self, statement: str, *values: object) -> list:
        with closing(sqlite3.connect(self.path)) as connection:
            found = connection.execute(statement, values).fetchall()
            connection.commit()
        return found

    def listed(self) -> tuple[int, int, str]:
        """(chain, sequence, path) of a file in the middle of the first chain."""
        rows = self.sql(
            "SELECT chain, sequence, path FROM gapless_promotion WHERE chain = 1 ORDER BY sequence"
        )
        return rows[len(rows) // 2]

    def replace_file(self, change, *, rows: int | None = None) -> None:
        """Write another file in its place, with a digest that is right."""
        chain, sequence, path = self.listed()
        table = change(pq.read_table(path, partitioning=None))
        spoiled = self.folder / "spoiled.parquet"
        pq.write_table(table, spoiled)
        self.sql(
            "UPDATE gapless_promotion SET path = ?, digest = ?, rows = ? WHERE chain = ? AND sequence = ?",
            str(spoiled),
            hashlib.sha256(spoiled.read_bytes()).hexdigest(),
            table.num_rows if rows is None else rows,
            chain,
            sequence,
        )


@pytest.fixture
def copy(finished, tmp_path):
    return Copy(finished, tmp_path)


def changed(column: str, row: int, value: object):
    def change(table: pa.Table) -> pa.Table:
        values = table.column(column).to_pylist()
        values[row] = value
        at = table.schema.get_field_index(column)
        return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))

    return change


def test_what_is_true_passes(copy):
    now = copy.oracle.finish()
    assert now.frontier is not None
    assert sum(chain.events for chain in now.chains.values()) == 240


def without_rows(*rows: int):
    return lambda table: table.take([n for n in range(table.num_rows) if n not in rows])


def test_an_event_that_is_missing(copy):
    copy.replace_file(without_rows(3))
    with pytest.raises(Untrue, match="are missing"):
        copy.oracle.look()


def test_the_first_and_the_last_event(copy):
    chain, sequence, _ = copy.listed()
    copy.sql("DELETE FROM gapless_promotion WHERE chain = ? AND sequence > ?", chain, sequence)
    following, events = copy.sql(
        "SELECT max(sequence + pages), sum(events) FROM gapless_promotion WHERE chain = ?", chain
    )[0]
    copy.sql("UPDATE gapless_chain SET sequence = ?, events = ? WHERE chain = ?", following, events, chain)
    with pytest.raises(Untrue, match="has ended without"):
        copy.oracle.look()
    copy.sql("UPDATE gapless_chain SET state = 'open' WHERE chain = ?", chain)
    with pytest.raises(Untrue, match=r"are missing, .* is claimed"):
        copy.oracle.look()


def test_an_event_that_stands_there_twice(copy):
    copy.replace_file(lambda table: pa.concat_tables([table, table.slice(table.num_rows - 1)]))
    with pytest.raises(Untrue, match="again, and nothing explains it"):
        copy.oracle.look()


def test_a_repeated_page_that_no_restart_covers(copy):
    _, sequence, path = copy.listed()
    rows = copy.sql(
        "SELECT chain, sequence, path FROM gapless_promotion WHERE chain = 1 AND sequence > ?", sequence
    )
    first = pq.read_table(path, partitioning=None)
    _, later, second = rows[0]
    table = pq.read_table(second, partitioning=None)
    again = changed("_sequence", 0, later)(first.slice(first.num_rows - 1))
    spoiled = copy.folder / "again.parquet"
    pq.write_table(pa.concat_tables([again, table]), spoiled)
    copy.sql(
        "UPDATE gapless_promotion SET path = ?, digest = ?, rows = rows + 1 WHERE chain = 1 AND sequence = ?",
        str(spoiled),
        hashlib.sha256(spoiled.read_bytes()).hexdigest(),
        later,
    )
    with pytest.raises(Untrue, match="again, and nothing explains it"):
        copy.oracle.look()
    copy.oracle.repeats = True
    copy.oracle._files.clear()
    copy.oracle.look()


def test_a_frontier_above_what_a_member_has_certified(copy):
    copy.sql("UPDATE gapless_chain SET bound = ? WHERE chain = 2", DOMAIN.key(Bound.through(5)))
    with pytest.raises(Untrue, match="is claimed"):
        copy.oracle.look()


def test_a_frontier_that_went_back(copy):
    copy.oracle.look()
    low = DOMAIN.key(Bound.through(1))
    copy.sql("UPDATE gapless_scope SET frontier = ?", low)
    copy.sql("DELETE FROM gapless_frontier_history")
    copy.sql(
        "INSERT INTO gapless_frontier_history (scope, lineage, epoch, frontier, basis, published_at)"
        " VALUES ('orders', 1, 1, ?, 'certified', '2024')",
        low,
    )
    with pytest.raises(Untrue, match="went back"):
        copy.oracle.look()


def test_a_history_that_goes_back(copy):
    copy.sql(
        "INSERT INTO gapless_frontier_history (scope, lineage, epoch, frontier, basis, published_at)"
        " VALUES ('orders', 1, 1, ?, 'certified', '2024')",
        DOMAIN.key(Bound.through(1)),
    )
    with pytest.raises(Untrue, match="history went back"):
        copy.oracle.look()


@pytest.mark.parametrize("column", ["bound", "sequence", "fencing_token"])
def test_a_chain_that_went_back(copy, column):
    copy.sql("UPDATE gapless_scope SET frontier = x''")
    copy.sql("DELETE FROM gapless_frontier_history")
    copy.oracle.look()
    lower = DOMAIN.key(Bound.through(1)) if column == "bound" else 0
    copy.sql(f"UPDATE gapless_chain SET {column} = ? WHERE chain = 1", lower)
    with pytest.raises(Untrue, match="went back"):
        copy.oracle.look()


def test_a_promotion_that_was_undone(copy):
    copy.oracle.look()
    chain, sequence, _ = copy.listed()
    copy.sql(
        "UPDATE gapless_promotion SET fencing_token = 99 WHERE chain = ? AND sequence = ?", chain, sequence
    )
    with pytest.raises(Untrue, match="undone or changed"):
        copy.oracle.look()


def test_a_hole_in_the_chain_of_pages(copy):
    chain, sequence, _ = copy.listed()
    copy.sql("DELETE FROM gapless_promotion WHERE chain = ? AND sequence = ?", chain, sequence)
    with pytest.raises(Untrue, match="were never promoted"):
        copy.oracle.look()


def test_a_run_that_does_not_start_where_the_one_before_it_ended(copy):
    chain, sequence, _ = copy.listed()
    copy.sql("UPDATE gapless_promotion SET token_in = 'x' WHERE chain = ? AND sequence = ?", chain, sequence)
    with pytest.raises(Untrue, match="another token"):
        copy.oracle.look()


def test_a_file_that_is_listed_twice(copy):
    _, _, path = copy.listed()
    copy.sql("UPDATE gapless_promotion SET path = ? WHERE chain = 2", path)
    with pytest.raises(Untrue, match="listed twice"):
        copy.oracle.look()


def test_a_file_of_another_partition(copy):
    (other,) = copy.sql(
        "SELECT path, digest, rows FROM gapless_promotion WHERE chain = 2 ORDER BY sequence LIMIT 1"
    )
    copy.sql("DELETE FROM gapless_promotion WHERE chain = 2")
    copy.sql("DELETE FROM gapless_chain WHERE chain = 2")
    copy.sql(
        "UPDATE gapless_promotion SET path = ?, digest = ?, rows = ? WHERE chain = 1 AND sequence = 0", *other
    )
    with pytest.raises(Untrue, match="another partition"):
        copy.oracle.look()


def test_a_file_that_is_not_there(copy):
    copy.sql("UPDATE gapless_promotion SET path = path || 'x' WHERE chain = 1 AND sequence = 0")
    with pytest.raises(Untrue, match="not there"):
        copy.oracle.look()


def test_a_file_that_was_changed_afterwards(copy):
    chain, sequence, path = copy.listed()
    other = copy.folder / "other.parquet"
    shutil.copy(path, other)
    with other.open("ab") as file:
        file.write(b"x")
    copy.sql(
        "UPDATE gapless_promotion SET path = ? WHERE chain = ? AND sequence = ?", str(other), chain, sequence
    )
    with pytest.raises(Untrue, match="not what is listed"):
        copy.oracle.look()


def test_rows_that_are_counted_and_not_there(copy):
    copy.replace_file(lambda table: table, rows=7)
    with pytest.raises(Untrue, match="7 are listed"):
        copy.oracle.look()


def test_rows_of_pages_that_the_file_is_not_listed_for(copy):
    copy.replace_file(changed("_sequence", 0, 999))
    with pytest.raises(Untrue, match="not listed for"):
        copy.oracle.look()


@pytest.mark.parametrize("column", ["events", "dead_letters"])
def test_a_count_that_is_wrong(copy, column):
    copy.sql(f"UPDATE gapless_chain SET {column} = {column} + 1 WHERE chain = 1")
    with pytest.raises(Untrue, match="counted"):
        copy.oracle.look()


def test_an_event_that_the_source_never_had(copy):
    copy.replace_file(changed("_event_id", 0, "nobody"))
    with pytest.raises(Untrue, match="never had"):
        copy.oracle.look()


def test_an_event_at_another_position(copy):
    copy.replace_file(changed("_position", 0, "7777777"))
    with pytest.raises(Untrue, match="at 7777777"):
        copy.oracle.look()


def test_a_field_of_an_event_that_is_not_what_it_was(copy):
    copy.replace_file(changed("amount", 2, 12345678))
    copy.oracle.look()
    with pytest.raises(Untrue, match="the source has"):
        copy.oracle.finish()


def test_a_member_that_nobody_reads(copy):
    copy.sql("DELETE FROM gapless_chain WHERE chain = 2")
    copy.sql("DELETE FROM gapless_promotion WHERE chain = 2")
    with pytest.raises(Untrue, match="is no member"):
        copy.oracle.look()


@pytest.mark.parametrize(
    ("breakage", "what"),
    [
        ("publish_the_highest_bound", "is claimed"),
        ("lose_the_last_event_of_every_page", "missing"),
        ("certify_what_is_still_to_come", "missing, .* is claimed"),
        ("list_files_before_they_are_durable", "not there"),
    ],
)
def test_a_product_that_is_broken_does_not_pass(make_site, breakage, what):
    """The oracle watches a real backfill by a product that breaks one promise."""
    site = make_site(knobs=Knobs(seed=16, partitions=3, events=400, page=20), target_rows=20)
    with pytest.raises(Untrue, match=what):
        with Watch(site.oracle, every=0.0):
            site.run(breakage=breakage)
