"""The transaction index as a segment writes it: appended, searched, cut, renamed."""

from pathlib import Path

import pytest
from small_logs import Clock, small_config

from local_log.engine.folder import LogFolder
from local_log.engine.index_file import CorruptIndex
from local_log.engine.local_log import LocalLog
from local_log.engine.segments import Segments
from local_log.engine.txn_index_file import TxnIndexFile
from local_log.errors import Corrupt, Invalid
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index
from local_log.os_disk import OsWritableDisk

ABORTED = (
    AbortedTxn(first_offset=2, last_offset=12, producer_id=70, last_stable_offset=9),
    AbortedTxn(first_offset=9, last_offset=21, producer_id=71, last_stable_offset=16),
    AbortedTxn(first_offset=24, last_offset=40, producer_id=72, last_stable_offset=33),
    AbortedTxn(first_offset=33, last_offset=52, producer_id=73, last_stable_offset=45),
)


def file_in(folder: Path) -> Path:
    return folder / "00000000000000000000.txnindex"


def opened(folder: Path, base_offset: int = 0) -> TxnIndexFile:
    return TxnIndexFile(OsWritableDisk(), str(file_in(folder)), base_offset)


def filled(folder: Path, *aborted: AbortedTxn) -> TxnIndexFile:
    index = opened(folder)
    for txn in aborted or ABORTED:
        index.append(txn)
    return index


def log_of_two(folder: Path) -> LocalLog:
    """The first segment has aborted transactions, and so has the second."""
    whole = LogFolder(OsWritableDisk(), str(folder), small_config(), Clock(), lambda: 0.0)
    segments = Segments()
    for one in (whole.segment(0), whole.segment(60)):
        segments.add(one)
    for txn in ABORTED:
        segments.first.txn_index.append(txn)
    segments.active.txn_index.append(AbortedTxn(5, 70, 74, 71))
    return LocalLog(whole, segments, 0, 80)


def test_an_index_opened_again_is_appended_to_at_its_end(tmp_path: Path) -> None:
    filled(tmp_path)
    more = AbortedTxn(55, 60, 73, 58)
    index = opened(tmp_path)
    index.append(more)
    assert tuple(index.all()) == (*ABORTED, more)
    assert read_txn_index(file_in(tmp_path).read_bytes()) == (*ABORTED, more)


def test_a_marker_from_before_the_segment_makes_the_index_foreign(tmp_path: Path) -> None:
    filled(tmp_path).check()
    opened(tmp_path, 12).check()
    with pytest.raises(CorruptIndex) as e:
        opened(tmp_path, 22).check()
    assert (e.value.file, e.value.position) == (str(file_in(tmp_path)), 0)


@pytest.mark.parametrize("last_offset", [52, 51])
def test_a_marker_has_to_lie_behind_the_one_appended_before(tmp_path: Path, last_offset: int) -> None:
    index = filled(tmp_path)
    with pytest.raises(Invalid):
        index.append(AbortedTxn(0, last_offset, 1, 0))
    assert tuple(index.all()) == ABORTED


def test_after_opening_the_first_marker_may_lie_anywhere(tmp_path: Path) -> None:
    filled(tmp_path)
    index = opened(tmp_path)
    index.append(AbortedTxn(3, 30, 1, 4))  # recovery begins with an empty index; what is in it is not looked at
    with pytest.raises(Invalid):
        index.append(AbortedTxn(3, 30, 1, 4))


@pytest.mark.parametrize(
    ("start", "end", "found", "also_in_the_second"),
    [
        (0, 100, ABORTED, True),
        (0, 33, ABORTED[:3], False),  # the third says that nothing open lies below 33
        (0, 34, ABORTED, False),
        (12, 40, ABORTED, False),
        (13, 40, ABORTED[1:], False),
        (22, 46, ABORTED[2:], True),
        (53, 80, (), True),
        (0, 2, (), False),
    ],
)
def test_aborted_transactions_are_searched_for_until_nothing_open_can_lie_below_the_end(
    tmp_path: Path, start: int, end: int, found: tuple[AbortedTxn, ...], also_in_the_second: bool
) -> None:
    log = log_of_two(tmp_path)
    expected = (*found, AbortedTxn(5, 70, 74, 71)) if also_in_the_second else found
    assert log.aborted(log.segments.first, start, end) == expected


def test_an_index_is_cut_before_the_first_marker_at_or_behind_an_offset(tmp_path: Path) -> None:
    index = filled(tmp_path)
    index.truncate_to(53)
    assert tuple(index.all()) == ABORTED
    index.truncate_to(52)
    assert tuple(index.all()) == ABORTED[:3]
    index.append(AbortedTxn(33, 41, 73, 45))  # above the last one kept
    index.truncate_to(13)
    assert tuple(index.all()) == ABORTED[:1]
    index.reset()
    assert tuple(index.all()) == ()
    assert file_in(tmp_path).read_bytes() == b""
    index.append(ABORTED[0])
    assert tuple(index.all()) == ABORTED[:1]


def test_an_entry_is_a_version_a_producer_and_three_offsets(tmp_path: Path) -> None:
    filled(tmp_path, AbortedTxn(first_offset=0x21, last_offset=0x43, producer_id=0x0102030405060708, last_stable_offset=0x65))
    written = file_in(tmp_path).read_bytes()
    assert written == bytes.fromhex("0000 0102030405060708 0000000000000021 0000000000000043 0000000000000065")
    assert tuple(opened(tmp_path).all()) == (AbortedTxn(0x21, 0x43, 0x0102030405060708, 0x65),)


@pytest.mark.parametrize(("version", "is_read"), [(b"\0\0", True), (b"\0\x01", True), (b"\x01\0", False)])
def test_of_the_version_only_the_first_byte_counts(tmp_path: Path, version: bytes, is_read: bool) -> None:
    filled(tmp_path, ABORTED[0])
    file_in(tmp_path).write_bytes(version + file_in(tmp_path).read_bytes()[2:])
    if is_read:
        assert tuple(opened(tmp_path).all()) == ABORTED[:1]
    else:
        with pytest.raises(Corrupt, match="version"):
            tuple(opened(tmp_path).all())


def test_a_renamed_segment_goes_on_in_the_same_index(tmp_path: Path) -> None:
    log = log_of_two(tmp_path)
    first = log.segments.first
    first.rename(".deleted")
    assert first.txn_index.file.endswith("00000000000000000000.txnindex.deleted")
    more = AbortedTxn(54, 58, 73, 57)
    first.txn_index.append(more)
    assert tuple(first.txn_index.all()) == (*ABORTED, more)
    assert not file_in(tmp_path).exists()


def test_a_segment_whose_folder_has_another_name_goes_on_in_the_index_there(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    log = log_of_two(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    log.segments.first.moved_to(str(tmp_path / "b"))
    assert Path(log.segments.first.txn_index.file) == file_in(tmp_path / "b")
    assert tuple(log.segments.first.txn_index.all()) == ABORTED


def test_an_index_without_entries_makes_no_file_when_it_is_synced(tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.sync()
    assert not file_in(tmp_path).exists()
    index.append(ABORTED[0])
    index.sync()
    assert file_in(tmp_path).stat().st_size == 34


def test_a_deleted_segment_leaves_no_index(tmp_path: Path) -> None:
    log = log_of_two(tmp_path)
    assert file_in(tmp_path).exists()
    log.segments.first.delete()
    assert not file_in(tmp_path).exists()


def test_an_index_without_a_file_is_empty(tmp_path: Path) -> None:
    index = opened(tmp_path)
    assert tuple(index.all()) == ()
    index.check()
    index.truncate_to(0)
    index.reset()
    assert not file_in(tmp_path).exists()


def test_an_empty_file_is_an_empty_index(tmp_path: Path) -> None:
    file_in(tmp_path).touch()
    assert tuple(opened(tmp_path).all()) == ()


def test_an_index_with_an_entry_is_not_empty(tmp_path: Path) -> None:
    assert tuple(filled(tmp_path, ABORTED[1]).all()) == ABORTED[1:2]


def test_an_entry_cut_short_is_none(tmp_path: Path) -> None:
    filled(tmp_path)
    file_in(tmp_path).write_bytes(file_in(tmp_path).read_bytes()[:-1])
    assert tuple(opened(tmp_path).all()) == ABORTED[:3]
