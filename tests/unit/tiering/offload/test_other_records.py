"""A directory that was restored from an older copy and has gone on: it has other records at offsets that are archived."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, verbs
from keyed_logs import KeyedLog
from logs_to_archive import path_of
from made_manifests import assert_sound_chain
from small_logs import opened

from local_log.errors import Conflict
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan

SEGMENT_BYTES = 600


@pytest.fixture
def log(tmp_path: Path) -> Iterator[KeyedLog]:
    log = KeyedLog(tmp_path / "logs", segment_bytes=SEGMENT_BYTES)
    write(log, 4)
    yield log
    log.log.close()


def write(log: KeyedLog, segments: int, size: int = 100, *, per_segment: int = 3) -> None:
    for n in range(segments):
        for _ in range(per_segment):
            log.put((b"key %d" % n, b"v" * size))
        log.log.roll()


def archive(log: KeyedLog, store: MemoryStore, prefix: str = "", source: str = "") -> list[Done]:
    """Offloads the log as its directory, or as another one."""
    run = OffloadRun(store, FixedClock(), CountingIds(prefix), source or str(log.root), lambda _: None)
    return list(offload(plan(log.reader(), store), run))


def store_size(store: MemoryStore, log: KeyedLog) -> int:
    return assert_sound_chain(store, path_of(log.reader())).entries[0].log_size


def restored_from(log: KeyedLog, copy: Path) -> None:
    log.log.close()
    shutil.rmtree(log.folder)
    shutil.copytree(copy, log.folder)
    log.log = opened(log.folder, segment_bytes=SEGMENT_BYTES)


def older_copy(log: KeyedLog, tmp_path: Path) -> Path:
    log.log.flush()
    return Path(shutil.copytree(log.folder, tmp_path / "copy"))


@pytest.mark.parametrize(("size", "per_segment"), [(90, 3), (110, 3), (10, 4), (220, 2)])
def test_it_is_not_archived_and_the_message_says_what_to_do(log: KeyedLog, tmp_path: Path, size: int, per_segment: int) -> None:
    store, copy = MemoryStore(), older_copy(log, tmp_path)
    write(log, 3)
    archive(log, store)
    before = assert_sound_chain(store, path_of(log.reader()))
    restored_from(log, copy)
    write(log, 5, size, per_segment=per_segment)
    store.calls.clear()
    with pytest.raises(Conflict, match="has other records than the archive") as refused:
        archive(log, store, "b")
    assert "read them from the log, create the topic anew and append them there" in str(refused.value)
    assert verbs(store.calls) == ["list", "get"]
    assert assert_sound_chain(store, path_of(log.reader())) == before


def test_the_same_directory_and_a_longer_one_are_archived_as_before(log: KeyedLog, tmp_path: Path) -> None:
    store, copy = MemoryStore(), older_copy(log, tmp_path)
    write(log, 3)
    archive(log, store)
    restored_from(log, copy)
    assert {d.action for d in archive(log, store, "b")} == {"archived", "keep"}
    write(log, 4)  # the same again
    assert {d.action for d in archive(log, store, "c")} == {"archived", "copied", "keep"}


def test_a_cleaned_log_is_not_another_one(log: KeyedLog) -> None:
    store = MemoryStore()
    archive(log, store)
    log.clean()
    assert log.segment(0).stat().st_size < store_size(store, log)
    write(log, 1)
    assert {d.action for d in archive(log, store, "b")} == {"archived", "copied", "keep"}


def test_a_damaged_segment_that_is_archived_does_not_keep_others_from_it(log: KeyedLog) -> None:
    store = MemoryStore()
    archive(log, store)
    body = log.segment(3).read_bytes()
    log.segment(3).write_bytes(body[: len(body) // 3])
    write(log, 1)
    assert {d.action for d in archive(log, store, "b")} == {"archived", "copied", "keep"}


def test_sizes_say_nothing_where_a_replica_has_archived_which_may_have_been_cleaned(log: KeyedLog, tmp_path: Path) -> None:
    store, copy = MemoryStore(), older_copy(log, tmp_path)
    write(log, 3)
    archive(log, store, source="a replica")
    restored_from(log, copy)
    write(log, 4, 90)
    assert [d.error for d in archive(log, store, "b") if d.error] == []
