"""SQLite on a disk that is full or cannot be written: a clear error, and nothing half done."""

from pathlib import Path

import pytest
from full_disk import no_file_may_grow_beyond

from gapless.errors import StoreUnwritable
from gapless.store import open_store


def limit_pages(store):
    """SQLite itself says that the disk is full when the file would need one more page."""
    with store._database.bare() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")


def test_a_promotion_on_a_full_disk_changes_nothing_and_works_when_there_is_room(sqlite_scene, kit):
    (row,) = sqlite_scene.members("a")
    before = sqlite_scene.contents()
    limit_pages(sqlite_scene.store)
    big = kit.promotion(row, 10, dead_letters=[kit.letter(f"e{n}", payload="x" * 4000) for n in range(10)])
    with pytest.raises(StoreUnwritable, match="no space is left") as refused:
        sqlite_scene.store.promote(big)
    assert refused.value.remedy.startswith("make room and run again: what was promoted before stays")
    assert sqlite_scene.contents() == before
    with sqlite_scene.store._database.bare() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=1000000")
    assert sqlite_scene.store.promote(big).dead_letters == 10


def test_a_list_of_many_partitions_on_a_full_disk_is_not_taken_in_half(sqlite_scene):
    sqlite_scene.observe("a")
    before = sqlite_scene.contents()
    limit_pages(sqlite_scene.store)
    with pytest.raises(StoreUnwritable, match="no space is left"):
        sqlite_scene.observe("a", *(f"p{n}" for n in range(3000)))
    assert sqlite_scene.contents() == before


def test_a_write_that_the_system_refuses_changes_nothing(sqlite_scene, kit):
    (row,) = sqlite_scene.members("a")
    before = sqlite_scene.contents()
    wal = Path(sqlite_scene.url.removeprefix("sqlite:///") + "-wal")
    with no_file_may_grow_beyond(wal.stat().st_size):
        with pytest.raises(StoreUnwritable):
            sqlite_scene.store.promote(
                kit.promotion(row, 10, dead_letters=[kit.letter("e", payload="x" * 9000)])
            )
    assert sqlite_scene.contents() == before
    assert sqlite_scene.advance(row, 10).sequence == 1


def test_a_store_that_could_not_be_created_is_created_when_there_is_room(sqlite_url):
    with no_file_may_grow_beyond(8192):
        with pytest.raises(StoreUnwritable):
            open_store(sqlite_url, create=True)
    with open_store(sqlite_url, create=True) as store:
        assert store.scopes() == []
