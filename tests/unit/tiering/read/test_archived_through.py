"""How far in time an archive has a topic."""

from pathlib import Path

import pytest
from made_archive import made

from local_log.errors import NotFound
from remote.store.open import open_store
from tiering.read.archived_through import ArchivedThrough, archived_through, partitions_behind


def test_a_partition_is_archived_through_the_latest_of_its_records_wherever_that_is(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    made(store, [[[10, 70, 20]], [[30]]])
    made(store, [[[5]]], partition=2)
    assert archived_through(store, "made") == (ArchivedThrough(0, 4, 70), ArchivedThrough(2, 1, 5))
    assert archived_through(store, "other") == ()


def test_nobody_is_told_of_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no archive there"):
        archived_through(open_store(str(tmp_path)), "made")


def test_a_topic_is_behind_where_any_of_its_partitions_has_no_record_as_late() -> None:
    found = (ArchivedThrough(0, 4, 70), ArchivedThrough(1, 0, -1), ArchivedThrough(2, 1, 5))
    assert partitions_behind(found, 5) == (1,)
    assert partitions_behind(found, 6) == partitions_behind(found, 70) == (1, 2)
    assert partitions_behind(found, 71) == (0, 1, 2)


def test_only_the_partitions_that_are_named_are_waited_for_and_those_that_are_not_there_yet_too() -> None:
    found = (ArchivedThrough(0, 4, 70), ArchivedThrough(1, 0, -1))
    assert partitions_behind(found, 70, [0]) == ()
    assert partitions_behind(found, 70, [0, 3]) == (3,)
