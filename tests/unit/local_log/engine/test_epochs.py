"""The leader epochs of a log: what an append adds, what contradicts it, what a truncation takes, what a follower asks."""

from pathlib import Path

import pytest

from local_log.engine.epochs import LeaderEpochs
from local_log.errors import Corrupt, Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.os_disk import OsWritableDisk

Entries = list[tuple[int, int]]


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    return LeaderEpochs(OsWritableDisk(), str(tmp_path))


def with_entries(epochs: LeaderEpochs, *entries: tuple[int, int]) -> LeaderEpochs:
    for epoch, offset in entries:
        epochs.assign(epoch, offset)
    return epochs


def entries(epochs: LeaderEpochs) -> Entries:
    return [(e.epoch, e.start_offset) for e in epochs.entries]


def written(folder: Path) -> Entries:
    lines = (folder / "leader-epoch-checkpoint").read_text().splitlines()
    assert lines[:2] == ["0", str(len(lines) - 2)]
    return [(int(epoch), int(offset)) for epoch, offset in map(str.split, lines[2:])]


THREE = ((1, 30), (4, 50), (6, 90))


# Assigned


def test_an_epoch_starts_at_the_first_offset_that_it_is_seen_with(epochs: LeaderEpochs) -> None:
    epochs.assign(3, 40)
    assert epochs.latest_epoch == 3
    assert entries(epochs) == [(3, 40)]
    assert epochs.end_offset_for(3, 44) == EpochEntry(3, 44)


@pytest.mark.parametrize("offset", [40, 41, 900])
def test_later_offsets_of_the_same_epoch_change_nothing(tmp_path: Path, epochs: LeaderEpochs, offset: int) -> None:
    epochs.assign(3, 40)
    (tmp_path / "leader-epoch-checkpoint").unlink()
    epochs.assign(3, offset)
    assert entries(epochs) == [(3, 40)]
    assert not (tmp_path / "leader-epoch-checkpoint").exists()  # not written once more


def test_an_epoch_that_starts_where_another_did_replaces_it(epochs: LeaderEpochs) -> None:
    assert entries(with_entries(epochs, (3, 40), (4, 40))) == [(4, 40)]


def test_an_epoch_from_the_past_drops_those_above_it_and_starts_anew(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (2, 10), (3, 20), (2, 30))
    assert entries(epochs) == [(2, 30)]
    assert epochs.latest_epoch == 2
    assert epochs.end_offset_for(2, 35) == EpochEntry(2, 35)
    assert epochs.end_offset_for(3, 35) is None


def test_a_later_epoch_at_a_lower_offset_drops_those_that_start_behind_it(epochs: LeaderEpochs) -> None:
    assert entries(with_entries(epochs, (3, 40), (4, 60), (5, 39))) == [(5, 39)]
    assert entries(with_entries(epochs, (6, 80), (7, 100), (8, 90))) == [(5, 39), (6, 80), (8, 90)]


def test_the_latest_epoch_at_a_lower_offset_drops_what_lies_between(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE, (6, 50))
    assert entries(epochs) == [(1, 30), (6, 50)]
    assert epochs.end_offset_for(1, 99) == epochs.end_offset_for(4, 99) == EpochEntry(1, 50)


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 5), (5, -1)])
def test_neither_epochs_nor_offsets_are_below_zero(epochs: LeaderEpochs, epoch: int, offset: int) -> None:
    with pytest.raises(Invalid):
        epochs.assign(epoch, offset)
    assert entries(epochs) == []


# Asked by a follower


@pytest.mark.parametrize("end", [40, 41, 70])
def test_the_latest_epoch_ends_at_the_log_s_end(epochs: LeaderEpochs, end: int) -> None:
    assert with_entries(epochs, (2, 7), (3, 40)).end_offset_for(3, end) == EpochEntry(3, end)


def test_nothing_is_known_of_the_end_of_no_epoch(epochs: LeaderEpochs) -> None:
    assert epochs.end_offset_for(-1, 50) is None
    assert with_entries(epochs, *THREE).end_offset_for(-1, 99) is None


def test_without_any_epoch_nothing_is_known_of_an_end(epochs: LeaderEpochs) -> None:
    assert epochs.latest_epoch is None
    assert [epochs.end_offset_for(epoch, 5) for epoch in (0, 7)] == [None, None]


def test_nothing_is_known_of_the_end_of_an_epoch_to_come(epochs: LeaderEpochs) -> None:
    assert with_entries(epochs, (3, 40)).end_offset_for(4, 40) is None


def test_an_epoch_from_before_the_first_ends_where_the_first_starts(epochs: LeaderEpochs) -> None:
    assert with_entries(epochs, (5, 11), (7, 20)).end_offset_for(2, 99) == EpochEntry(2, 11)


def test_an_earlier_epoch_ends_where_the_next_one_starts(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (1, 30), (1, 44), (4, 50), (4, 61), (6, 90), (6, 91))
    assert [epochs.end_offset_for(epoch, 99) for epoch in (1, 4)] == [EpochEntry(1, 50), EpochEntry(4, 90)]


def test_an_epoch_that_wrote_nothing_is_answered_with_the_last_one_before_it(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE)
    assert [epochs.end_offset_for(e, 99) for e in (2, 3, 5)] == [EpochEntry(1, 50), EpochEntry(1, 50), EpochEntry(4, 90)]


def test_leaders_that_write_nothing_leave_no_epoch_but_the_ends_of_those_before_hold(epochs: LeaderEpochs) -> None:
    with_entries(epochs, (0, 0), (1, 0))
    assert [epochs.end_offset_for(e, 0) for e in (0, 1)] == [EpochEntry(0, 0), EpochEntry(1, 0)]
    assert [epochs.end_offset_for(e, 6) for e in (0, 1)] == [EpochEntry(0, 0), EpochEntry(1, 6)]
    epochs.assign(2, 6)
    assert [epochs.end_offset_for(e, 13) for e in (0, 1, 2)] == [EpochEntry(0, 0), EpochEntry(1, 6), EpochEntry(2, 13)]


def test_epochs_grow_with_what_a_follower_is_sent(epochs: LeaderEpochs) -> None:
    for offset in range(12):
        epochs.assign(offset // 4, offset)
        assert epochs.latest_epoch == offset // 4
        assert epochs.end_offset_for(offset // 4, offset + 1) == EpochEntry(offset // 4, offset + 1)
    assert entries(epochs) == [(0, 0), (1, 4), (2, 8)]
    assert [epochs.end_offset_for(e, 12) for e in (0, 1)] == [EpochEntry(0, 4), EpochEntry(1, 8)]


# Asked otherwise


def test_the_epoch_before_another_is_the_last_one_below_it(epochs: LeaderEpochs) -> None:
    assert epochs.before(4) is None
    epochs.assign(1, 30)
    assert epochs.before(1) is None
    with_entries(epochs, *THREE)
    assert [epochs.before(e) for e in (4, 5, 6, 100)] == [EpochEntry(*THREE[i]) for i in (0, 1, 1, 2)]


def test_after_a_cut_the_epoch_before_the_latest_is_an_earlier_one(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE).truncate_from_end(60)
    assert epochs.latest_epoch == 4
    assert epochs.before(4) == EpochEntry(1, 30)


def test_the_epoch_after_another_is_the_first_one_above_it(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE)
    assert [epochs.after(e) for e in (-1, 0, 1, 4, 5)] == [EpochEntry(*THREE[i]) for i in (0, 0, 1, 2, 2)]
    assert epochs.after(6) is epochs.after(100) is None


def test_an_epoch_is_found_by_its_number(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE)
    assert [epochs.entry(e) for e in (1, 4, 6)] == [EpochEntry(*entry) for entry in THREE]
    assert epochs.entry(2) is None


def test_an_offset_is_of_the_last_epoch_that_starts_at_or_below_it(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE)
    asked = {0: None, 29: None, 30: 1, 49: 1, 50: 4, 90: 6, 5000: 6}
    assert {offset: epochs.epoch_for(offset) for offset in asked} == asked


# Truncated


def test_a_cut_where_an_epoch_starts_drops_it_and_those_behind_it(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE).truncate_from_end(50)
    assert entries(epochs) == [(1, 30)]


def test_a_cut_inside_an_epoch_keeps_it(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE).truncate_from_end(51)
    assert epochs.latest_epoch == 4
    assert entries(epochs) == [(1, 30), (4, 50)]


def test_a_start_where_an_epoch_starts_leaves_it_as_it_is(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE).truncate_from_start(50)
    assert entries(epochs) == [(4, 50), (6, 90)]


def test_a_start_inside_an_epoch_moves_the_epoch_s_start_there(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE).truncate_from_start(63)
    assert entries(epochs) == [(4, 63), (6, 90)]


def test_a_start_inside_the_first_epoch_moves_only_its_start(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE).truncate_from_start(31)
    assert entries(epochs) == [(1, 31), (4, 50), (6, 90)]


@pytest.mark.parametrize("offset", [0, 29, 30])
def test_a_start_at_or_before_the_first_epoch_changes_nothing(epochs: LeaderEpochs, offset: int) -> None:
    with_entries(epochs, *THREE).truncate_from_start(offset)
    assert entries(epochs) == list(THREE)


@pytest.mark.parametrize("offset", [90, 91, 7000])
def test_a_start_behind_all_epochs_leaves_the_last_one_there(epochs: LeaderEpochs, offset: int) -> None:
    with_entries(epochs, *THREE).truncate_from_start(offset)
    assert entries(epochs) == [(6, offset)]


def test_no_offset_truncates_nothing(epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE)
    epochs.truncate_from_start(-1)
    epochs.truncate_from_end(-1)
    assert entries(epochs) == list(THREE)


def test_of_no_epochs_none_is_truncated(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_start(5)
    epochs.truncate_from_end(5)
    assert entries(epochs) == []


def test_all_epochs_are_forgotten_at_once(tmp_path: Path, epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE).clear()
    assert (entries(epochs), written(tmp_path), epochs.latest_epoch) == ([], [], None)


# Written down


def test_epochs_are_there_again_when_the_log_is_opened_again(tmp_path: Path, epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE)
    assert entries(LeaderEpochs(OsWritableDisk(), str(tmp_path))) == list(THREE)


def test_every_truncation_is_written_down(tmp_path: Path, epochs: LeaderEpochs) -> None:
    with_entries(epochs, *THREE)
    assert written(tmp_path) == list(THREE)
    epochs.truncate_from_end(90)
    assert written(tmp_path) == [(1, 30), (4, 50)]
    epochs.truncate_from_start(42)
    assert written(tmp_path) == [(1, 42), (4, 50)]


def test_what_does_not_grow_in_the_file_gives_way_to_what_comes_later(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n3\n1 30\n4 50\n2 40\n")
    assert entries(LeaderEpochs(OsWritableDisk(), str(tmp_path))) == [(1, 30), (2, 40)]


def test_a_file_that_is_no_checkpoint_is_corrupt_by_name(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("1\n0\n")
    with pytest.raises(Corrupt, match="leader-epoch-checkpoint"):
        LeaderEpochs(OsWritableDisk(), str(tmp_path))
