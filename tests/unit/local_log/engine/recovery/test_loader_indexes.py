"""A log's folder opened: indexes that are missing, damaged, left alone or not needed yet."""

from pathlib import Path

from small_logs import NOW, ONE, file_of, follow, found_at, marker, old_records, opened, produced, records


def test_missing_indexes_are_made_anew(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=4 * ONE)
    follow(log, *(records(i, time=NOW + 10 * i) for i in range(30)))
    log.close()
    written = {f.name: f.read_bytes() for f in tmp_path.iterdir() if f.suffix.endswith("index")}
    for name in written:
        (tmp_path / name).unlink()
    log = opened(tmp_path, segment_bytes=4 * ONE)
    assert log.log_end_offset == 30
    for offset in range(30):
        assert log.read(offset, 1).start.offset == offset
        assert found_at(log, NOW + 10 * offset) == offset
    log.close()
    assert {name: (tmp_path / name).read_bytes() for name in written} == written


def test_a_segment_that_was_flushed_but_has_no_time_index_gets_an_empty_one(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=4 * len(old_records(0)))
    follow(log, *(old_records(i, time=NOW + 10 * i) for i in range(30)))
    log.close()
    for file in tmp_path.glob("*.timeindex"):
        file.unlink()
    log = opened(tmp_path, point=31, segment_bytes=4 * len(old_records(0)))
    closed = list(log.local.segments)[:-1]
    assert len(closed) == 7
    assert [len(s.time_index) for s in closed] == [0] * 7
    assert [file_of(tmp_path, s.base_offset, ".timeindex").stat().st_size for s in closed] == [0] * 7


def test_damaged_indexes_are_made_anew_after_a_crash(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=4 * ONE)
    follow(log, *(records(i, time=NOW + 10 * i) for i in range(30)))
    log.close()
    written = {f.name: f.read_bytes() for f in tmp_path.iterdir() if f.suffix.endswith("index")}
    for name in written:
        (tmp_path / name).write_bytes(b"  ")
    log = opened(tmp_path, segment_bytes=4 * ONE)
    assert log.log_end_offset == 30
    assert [found_at(log, NOW + 10 * i) for i in range(30)] == list(range(30))
    log.close()
    assert {name: (tmp_path / name).read_bytes() for name in written} == written


def test_index_files_without_a_log_are_removed_and_those_of_a_new_log_have_their_whole_size(tmp_path: Path) -> None:
    for of in (".index", ".timeindex", ".txnindex"):
        file_of(tmp_path, 0, of).touch()
        file_of(tmp_path, 5, of).touch()
    log = opened(tmp_path)
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(f"{5:020d}")] == []
    assert (len(log.local.segments.active.offset_index), len(log.local.segments.active.time_index)) == (0, 0)
    assert file_of(tmp_path, 0, ".index").stat().st_size == 1200
    assert file_of(tmp_path, 0, ".timeindex").stat().st_size == 1200
    follow(log, *(records(i) for i in range(10)))
    assert log.log_end_offset == 10


def test_an_index_of_transactions_from_before_its_segment_has_the_segment_recovered(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0))
    log.roll()
    follow(log, produced(1, 8, 0, transactional=True), marker(2, 8, commit=False))
    log.close()
    index = file_of(tmp_path, 1, ".txnindex")
    written = index.read_bytes()
    index.write_bytes(written[:18] + bytes(8) + written[26:])
    opened(tmp_path, clean=True).close()
    assert index.read_bytes() == written


def test_an_empty_last_segment_has_no_index_files_until_it_is_flushed_or_opened_again(tmp_path: Path) -> None:
    def index_files(offset: int) -> list[bool]:
        return [file_of(tmp_path, offset, of).exists() for of in (".index", ".timeindex")]

    log = opened(tmp_path, segment_bytes=7 * ONE)
    follow(log, *(records(i) for i in range(20)))
    log.roll()
    log.flush()
    assert index_files(20) == [False, False]
    log.folder.disk.release(log.folder.path)  # as a crash would

    log = opened(tmp_path, point=20, segment_bytes=7 * ONE)
    assert (log.recovery_point, log.log_end_offset) == (20, 20)
    assert index_files(20) == [True, True]
    assert len(log.local.segments.active.time_index) == 0

    follow(log, *(records(20 + i) for i in range(20)))
    log.roll()
    assert index_files(40) == [False, False]
    log.flush(also_active=True)
    assert index_files(40) == [True, True]
    log = opened(tmp_path, point=40, segment_bytes=7 * ONE)
    assert (log.recovery_point, log.log_end_offset) == (40, 40)
