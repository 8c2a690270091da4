"""Copies whose leader epochs continue the history that is archived, and copies of another history."""

from dataclasses import replace

import pytest
from made_manifests import entry, epochs, manifest, paged

from local_log.errors import Conflict
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from remote.manifest.gaps import Gap
from remote.manifest.history import check_copy, check_history
from remote.manifest.model import Manifest
from remote.manifest.transitions import emptied, retained, segment_copied


def merged(
    known: tuple[EpochEntry, ...], lineage: tuple[EpochEntry, ...], base: int = 300, end: int = 400
) -> tuple[EpochEntry, ...]:
    before = manifest(entry(0, 300), leader_epochs=known)
    return segment_copied(before, entry(base, end), lineage, "", 7).leader_epochs


def test_new_epochs_are_added_behind_the_known_ones() -> None:
    assert merged(epochs((0, 0)), epochs((0, 0), (3, 310))) == epochs((0, 0), (3, 310))
    assert merged((), epochs((0, 0), (3, 310))) == epochs((0, 0), (3, 310))
    assert merged(epochs((0, 0)), ()) == epochs((0, 0))


def test_an_older_lineage_that_agrees_leaves_the_known_one() -> None:
    known = epochs((0, 0), (1, 100), (2, 350))
    before = manifest(entry(0, 100), entry(300, 400), leader_epochs=known)
    assert segment_copied(before, entry(100, 300), known[:2], "", 7).leader_epochs == known


def test_a_log_whose_start_has_moved_names_a_later_start_for_its_first_epoch() -> None:
    known = epochs((0, 0), (1, 100), (2, 200))
    assert merged(known, epochs((2, 250), (3, 310))) == epochs((0, 0), (1, 100), (2, 200), (3, 310))
    assert merged(known, epochs((1, 150), (2, 200), (3, 310))) == epochs((0, 0), (1, 100), (2, 200), (3, 310))
    assert merged(known, epochs((5, 300))) == epochs((0, 0), (1, 100), (2, 200), (5, 300))


@pytest.mark.parametrize(
    "lineage", [epochs((1, 0), (2, 200)), epochs((0, 0), (1, 50), (2, 200)), epochs((0, 0), (1, 100), (2, 200))], ids=str
)
def test_a_log_whose_start_has_not_moved_yet_is_of_the_same_history(lineage: tuple[EpochEntry, ...]) -> None:
    """The archive was begun by a replica whose log start had moved; another one, which lags behind, goes on."""
    before = manifest(entry(100, 300), log_start_offset=100, leader_epochs=epochs((1, 100), (2, 200)))
    after = segment_copied(before, entry(300, 400), lineage, "", 7)
    assert after.end_offset == 400
    assert after.leader_epochs[-2:] in (epochs((1, 100), (2, 200)), lineage[-2:])


@pytest.mark.parametrize(
    "lineage",
    [
        epochs((0, 0), (1, 99), (2, 200)),
        epochs((0, 0), (1, 101), (2, 200)),
        epochs((0, 0), (1, 100), (2, 260)),
        epochs((0, 0), (3, 150)),
        epochs((0, 0), (1, 100), (3, 150)),
        epochs((1, 50), (2, 200)),
        epochs((2, 150), (3, 310)),
    ],
    ids=str,
)
def test_a_lineage_that_contradicts_the_archives_is_a_conflict(lineage: tuple[EpochEntry, ...]) -> None:
    with pytest.raises(Conflict, match="another history"):
        merged(epochs((0, 0), (1, 100), (2, 200)), lineage)


def test_an_epoch_that_began_in_a_gap_starts_where_a_replica_says_that_has_it_all() -> None:
    """A replica whose log started at 150, in the middle of epoch 1, was archived behind a gap; another one fills the gap."""
    first = manifest(entry(0, 100), leader_epochs=epochs((0, 0)), topic_id="T" * 22)
    behind_a_gap = segment_copied(first, entry(150, 200), epochs((1, 150)), "", 7)
    assert behind_a_gap.leader_epochs == epochs((0, 0), (1, 150))
    after = segment_copied(behind_a_gap, entry(100, 150), epochs((0, 0), (1, 120)), "", 7)
    assert (after.gaps, after.leader_epochs) == ((), epochs((0, 0), (1, 120)))
    for lineage in (epochs((0, 0), (1, 99)), epochs((0, 0), (1, 120), (2, 140))):
        with pytest.raises(Conflict, match="another history"):
            segment_copied(behind_a_gap, entry(100, 150), lineage, "", 7)
    with pytest.raises(Conflict, match="another history"):
        segment_copied(replace(behind_a_gap, topic_id=ZERO_TOPIC_ID), entry(100, 150), epochs((0, 0), (1, 120)), "", 7)


def behind_a_gap(gap_end: int = 170) -> Manifest:
    """A replica whose log started at the gap's end, in epoch 4, was archived up to 200; nothing is archived from 100 on."""
    first = manifest(entry(0, 100), leader_epochs=epochs((0, 0)), topic_id="T" * 22)
    return segment_copied(first, entry(gap_end, 200), epochs((4, gap_end)), "", 7)


WHOLE = epochs((0, 0), (2, 100), (3, 120), (4, 150))
"""The leader epochs of a replica that has it all."""


def test_epochs_that_lie_in_a_gap_are_those_of_a_replica_that_has_them() -> None:
    halfway = segment_copied(behind_a_gap(), entry(100, 130), WHOLE, "", 7, log_end=180)
    assert halfway.leader_epochs == epochs((0, 0), (2, 100), (3, 120), (4, 170))
    after = segment_copied(halfway, entry(130, 170), WHOLE, "", 7, log_end=180)
    assert (after.gaps, after.leader_epochs) == ((), WHOLE)


@pytest.mark.parametrize(
    ("lineage", "log_end"),
    [
        (WHOLE, 150),  # a replica that lags behind: its leader may have truncated it
        (epochs((0, 0), (2, 100), (3, 120)), 140),
        (epochs((0, 0), (2, 100), (5, 150)), 300),
        (epochs((0, 0)), 140),  # epoch 0 is known, and the leader of it may have lost an unclean election at 100
        (epochs((0, 0), (2, 100), (3, 120)), 300),
    ],
    ids=str,
)
def test_what_a_log_has_in_a_gap_is_not_copied_unless_it_goes_on_as_the_archive_does(
    lineage: tuple[EpochEntry, ...], log_end: int
) -> None:
    before = behind_a_gap()
    with pytest.raises(Conflict, match=r"another history|gap \[100, 130\)"):
        segment_copied(before, entry(100, 130), lineage, "", 7, log_end=log_end)
    with pytest.raises(Conflict, match=r"another history|gap \[100, 130\)"):
        check_copy(before, (100, 130), lineage, log_end)


def test_a_log_that_does_not_go_on_as_the_archive_does_fills_no_gap_that_compaction_has_left() -> None:
    before = emptied(behind_a_gap(), [(100, 170)])
    assert before.holes == ()
    with pytest.raises(Conflict, match=r"gap \[100, 130\)"):
        segment_copied(before, entry(100, 130, leader_epochs=epochs((0, 100))), epochs((0, 0)), "", 7, log_end=140)
    assert segment_copied(before, entry(100, 130), WHOLE, "", 7, log_end=180).leader_epochs[:3] == WHOLE[:3]


def test_a_replica_that_goes_on_behind_a_gap_is_of_the_same_history_also_where_none_of_the_gap_is_copied() -> None:
    check_history(behind_a_gap(), WHOLE, 130, log_end=180)
    with pytest.raises(Conflict, match="another history"):
        check_history(behind_a_gap(), WHOLE, 130, log_end=140)
    check_history(behind_a_gap(), WHOLE, 130, log_end=140, is_clean=True)


def test_a_log_of_one_epoch_fills_a_gap_of_that_epoch_though_it_ends_there() -> None:
    """The epoch's leader has only appended."""
    first = manifest(entry(0, 100), leader_epochs=epochs((0, 0)), topic_id="T" * 22)
    before = segment_copied(first, entry(170, 200), epochs((0, 0)), "", 7)
    after = segment_copied(before, entry(100, 130), epochs((0, 0)), "", 7, log_end=140)
    assert [(gap.start, gap.end) for gap in after.gaps] == [(130, 170)]


@pytest.mark.parametrize("in_page", [True, False])
def test_an_epoch_that_seems_to_reach_behind_a_gap_since_the_next_one_is_known_too_late_proves_nothing(*, in_page: bool) -> None:
    """Epoch 2 began at 140. The replica was built when compaction had left nothing of it below 190; epoch 1 lost an election."""
    first = manifest(entry(0, 100), leader_epochs=epochs((1, 0)), topic_id="T" * 22)
    behind, newest = (entry(base, 200, leader_epochs=epochs((2, 190))) for base in (170, 180))
    before = segment_copied(first, behind, epochs((1, 0), (2, 190)), "", 7)
    if in_page:
        before = replace(before, entries=(newest,), pages=(paged(first.entries[0], behind),))
    with pytest.raises(Conflict, match=r"gap \[100, 130\)"):
        check_copy(before, (100, 130), epochs((1, 0)), 185)
    check_copy(before, (100, 130), epochs((1, 0), (2, 140)), 195)
    check_copy(before, (100, 130), epochs((1, 0), (2, 190)), 195)


def test_an_epoch_of_the_first_batch_behind_a_gap_proves_what_lies_in_it_though_later_ones_are_known() -> None:
    first = manifest(entry(0, 100), leader_epochs=epochs((1, 0)), topic_id="T" * 22)
    before = segment_copied(first, entry(170, 200, leader_epochs=epochs((1, 170), (2, 190))), epochs((1, 0), (2, 190)), "", 7)
    check_copy(before, (100, 130), epochs((1, 0)), 140)


def test_epochs_in_a_gap_are_not_joined_without_a_topic_id() -> None:
    before = replace(behind_a_gap(), topic_id=ZERO_TOPIC_ID)
    with pytest.raises(Conflict, match="another history"):
        segment_copied(before, entry(100, 130), WHOLE, "", 7, log_end=180)


@pytest.mark.parametrize("start", [98, 100, 103])
def test_a_gap_is_filled_in_which_retention_has_moved_the_archives_start(start: int) -> None:
    first = manifest(entry(66, 98), leader_epochs=epochs((5, 66)), topic_id="T" * 22, log_start_offset=66)
    gapped = segment_copied(first, entry(107, 120), epochs((7, 107)), "", 7)
    before = retained(gapped, start, 8)
    assert before.leader_epochs == epochs((5, start), (7, 107))  # nothing of epoch 5 is left, which the archive cannot know
    after = segment_copied(before, entry(98, 107), epochs((5, 66), (6, 98), (7, 102)), "", 9, log_end=120)
    assert after.gaps == ()
    assert after.leader_epochs == (epochs((6, start), (7, 102)) if start < 102 else epochs((7, start)))


def test_an_archive_without_epochs_gets_those_of_a_log_up_to_where_it_ends() -> None:
    """A replica that had lost its leader-epoch checkpoint was archived behind a gap."""
    before = manifest(entry(19, 33, leader_epochs=epochs((1, 19))), log_start_offset=10, topic_id="T" * 22)
    after = segment_copied(before, entry(10, 19), epochs((0, 0), (1, 19), (3, 40)), "", 7, log_end=50)
    assert after.leader_epochs == epochs((0, 0), (1, 19))
    assert segment_copied(after, entry(33, 50), epochs((0, 0), (1, 19), (3, 40)), "", 7).end_offset == 50


def test_new_epochs_of_a_log_that_has_lost_its_lineage_are_those_of_its_batches() -> None:
    before = archived((0, 0), base=10, end=19, known=epochs((0, 0)))
    without = segment_copied(before, entry(19, 24, leader_epochs=epochs((0, 19), (1, 20))), (), "", 7)
    assert without.leader_epochs == epochs((0, 0), (1, 20))
    assert segment_copied(without, entry(24, 30), epochs((0, 0), (1, 20)), "", 7).end_offset == 30


def test_an_epoch_may_begin_in_a_gap_that_has_several_reasons() -> None:
    """Of the replica that was archived from 130 on, in epoch 1, a segment was refused: its gap is one with that before."""
    first = manifest(entry(0, 100), leader_epochs=epochs((0, 0)), topic_id="T" * 22)
    behind = segment_copied(first, entry(130, 150), epochs((1, 130)), "never archived", 7)
    known = replace(behind, entries=(first.entries[0], entry(150, 200)), gaps=(*behind.gaps, Gap(130, 150, "refused", 7)))
    after = segment_copied(known, entry(100, 150), epochs((0, 0), (1, 120)), "", 7)
    assert (after.gaps, after.leader_epochs) == ((), epochs((0, 0), (1, 120)))


@pytest.mark.parametrize(
    "lineage",
    [epochs((0, 0), (1, 150), (2, 200)), epochs((0, 0), (1, 199), (2, 299)), epochs((0, 0), (1, 100), (2, 330))],
    ids=str,
)
def test_a_replica_that_was_built_from_a_compacted_log_is_of_the_same_history(lineage: tuple[EpochEntry, ...]) -> None:
    """It knows an epoch from the first batch on that compaction had left, and has that offset of the archive's epoch."""
    known = epochs((0, 0), (1, 100), (2, 200))
    before = replace(manifest(entry(0, 300), leader_epochs=known), topic_id="C" * 22)
    after = segment_copied(before, entry(300, 400), (*lineage, EpochEntry(3, 350)), "", 7)
    assert after.leader_epochs == (*known, EpochEntry(3, 350))


@pytest.mark.parametrize(
    "lineage",
    [
        epochs((0, 0), (1, 200), (2, 250)),  # at 200 the archive has a record of epoch 2
        epochs((1, 201), (2, 250)),
        epochs((0, 0), (1, 150), (2, 199)),  # and at 199 one of epoch 1
        epochs((0, 0), (1, 150)),  # nothing of epoch 2
        epochs((0, 0), (1, 150), (2, 250), (3, 299)),
    ],
    ids=str,
)
def test_an_epoch_that_starts_later_where_the_archive_has_another_one_is_a_conflict(lineage: tuple[EpochEntry, ...]) -> None:
    before = replace(manifest(entry(0, 300), leader_epochs=epochs((0, 0), (1, 100), (2, 200))), topic_id="C" * 22)
    with pytest.raises(Conflict, match="another history"):
        segment_copied(before, entry(300, 400), lineage, "", 7)


@pytest.mark.parametrize(
    ("known", "lineage"),
    [
        (epochs((0, 0), (1, 100), (2, 200)), epochs((0, 0), (2, 200), (3, 350))),  # the log lacks epoch 1
        (epochs((0, 0), (1, 100), (2, 200)), epochs((0, 0), (2, 250))),
        (epochs((0, 0), (2, 250)), epochs((0, 0), (1, 100), (2, 250))),  # the archive does
        (epochs((0, 0), (2, 250)), epochs((0, 0), (1, 100), (2, 200), (3, 300))),
        (epochs((0, 0), (1, 100), (2, 200)), epochs((0, 0), (1, 100), (2, 199))),  # the archive knows epoch 2 from later on
    ],
    ids=str,
)
def test_below_an_epoch_that_both_know_a_log_and_the_archive_may_lack_what_compaction_has_taken(
    known: tuple[EpochEntry, ...], lineage: tuple[EpochEntry, ...]
) -> None:
    one = entry(0, 300, record_count=120)
    before = replace(manifest(one, leader_epochs=known), topic_id="C" * 22)
    after = segment_copied(before, entry(300, 400), lineage, "", 7)
    assert after.leader_epochs == (*known, *(e for e in lineage if e.epoch > 2))
    with pytest.raises(Conflict, match="another history"):
        segment_copied(replace(before, topic_id=ZERO_TOPIC_ID), entry(300, 400), lineage, "", 7)


def test_an_epoch_that_both_know_after_a_gap_that_is_filled_counts() -> None:
    before = replace(
        manifest(entry(0, 200), entry(300, 400, record_count=60), leader_epochs=epochs((0, 0), (1, 250))), topic_id="T" * 22
    )
    after = segment_copied(before, entry(200, 300, record_count=9), epochs((0, 0), (1, 320)), "", 7, log_end=500)
    assert (after.gaps, after.leader_epochs) == ((), before.leader_epochs)


def test_a_first_epoch_from_where_retention_has_left_nothing_is_no_other_one() -> None:
    """The log lacks what it had of epoch 1 up to 130, and the archive knows nothing of epoch 1 below."""
    one = entry(100, 200, record_count=50)
    before = replace(manifest(one, log_start_offset=100, leader_epochs=epochs((0, 100), (1, 130))), topic_id="T" * 22)
    assert segment_copied(before, entry(200, 300), epochs((1, 100)), "", 7).end_offset == 300
    again = replace(manifest(one, log_start_offset=100, leader_epochs=epochs((1, 100))), topic_id="T" * 22)
    assert segment_copied(again, entry(200, 300), epochs((0, 100), (1, 130)), "", 7).end_offset == 300


@pytest.mark.parametrize(("gap_end", "start"), [(100, 100), (150, 120)], ids=["at the end", "in a gap"])
def test_an_archive_of_which_retention_has_left_nothing_at_its_start_goes_on_with_an_epoch_that_began_there(
    gap_end: int, start: int
) -> None:
    before = manifest(entry(0, 100), leader_epochs=epochs((0, 0)), topic_id="T" * 22)
    if gap_end > 100:
        before = segment_copied(before, entry(gap_end, 160), epochs((2, gap_end)), "", 7)
    left = retained(before, start, 8)
    assert left.leader_epochs[0] == EpochEntry(0, start)
    after = segment_copied(left, entry(left.end_offset, 200), epochs((0, 0), (1, 100), (2, 150), (3, 170)), "", 9)
    assert after.leader_epochs[-1] == EpochEntry(3, 170)


@pytest.mark.parametrize("in_page", [True, False])
def test_where_the_archive_has_every_record_neither_lacks_an_epoch(*, in_page: bool) -> None:
    one, newest = entry(0, 290), entry(290, 300, record_count=1)
    before = replace(manifest(one, newest, leader_epochs=epochs((0, 0), (2, 250), (4, 280))), topic_id="C" * 22)
    if in_page:
        before = replace(before, entries=(newest,), pages=(paged(one),))
    for lineage in (epochs((0, 0), (1, 100), (2, 250), (4, 280)), epochs((0, 0), (2, 240), (4, 280)), epochs((0, 0), (4, 280))):
        with pytest.raises(Conflict, match="another history"):
            segment_copied(before, entry(300, 400), lineage, "", 7)


def archived(*batches: tuple[int, int], base: int, end: int, known: tuple[EpochEntry, ...] = (), has_id: bool = True) -> Manifest:
    """An archive whose newest segment has batches of these epochs, and what it knows of its lineage."""
    before = manifest(entry(0, base), entry(base, end, leader_epochs=epochs(*batches)), leader_epochs=known)
    return replace(before, topic_id="C" * 22) if has_id else before


@pytest.mark.parametrize(
    ("batches", "lineage"),
    [
        (((1, 300),), ()),  # the archive has epoch 2 before
        (((4, 310),), epochs((1, 0), (3, 200))),  # the log has epoch 3 where the archive has 2
        (((4, 310),), epochs((1, 0), (4, 310))),  # and here epoch 1
    ],
    ids=str,
)
@pytest.mark.parametrize("known", [(), epochs((2, 250))], ids=str)
def test_two_histories_are_not_joined_where_a_lineage_is_missing(
    batches: tuple[tuple[int, int], ...], lineage: tuple[EpochEntry, ...], known: tuple[EpochEntry, ...]
) -> None:
    before = archived((1, 100), (2, 250), base=100, end=300, known=known)
    with pytest.raises(Conflict, match="another history"):
        segment_copied(before, entry(300, 400, leader_epochs=epochs(*batches)), lineage, "", 7)


@pytest.mark.parametrize("known", [(), epochs((2, 250)), epochs((0, 0), (1, 100), (2, 250))], ids=str)
@pytest.mark.parametrize(
    "lineage", [(), epochs((2, 250)), epochs((2, 280), (3, 300)), epochs((3, 300)), epochs((4, 320))], ids=str
)
def test_one_history_goes_on_where_a_lineage_is_missing_or_incomplete(
    known: tuple[EpochEntry, ...], lineage: tuple[EpochEntry, ...]
) -> None:
    before = archived((1, 100), (2, 250), base=100, end=300, known=known)
    own = lineage[-1:] if lineage and lineage[-1].epoch > 2 else epochs((2, 300), (5, 350))
    after = segment_copied(before, entry(300, 400, leader_epochs=own), lineage, "", 7)
    assert after.end_offset == 400
    assert after.leader_epochs[: len(known)] == known


def test_a_replica_of_a_compacted_log_may_know_the_epoch_of_the_archives_last_batch_from_later_on() -> None:
    for has_id in (True, False):
        before = archived((2, 250), base=100, end=300, has_id=has_id)
        late, one = epochs((1, 0), (2, 270)), entry(300, 400, leader_epochs=epochs((2, 300)))
        if has_id:
            assert segment_copied(before, one, late, "", 7).leader_epochs == late
        else:
            with pytest.raises(Conflict, match="another history"):
                segment_copied(before, one, late, "", 7)


def test_without_a_topic_id_an_epoch_that_starts_later_may_be_another_topics() -> None:
    with pytest.raises(Conflict, match="another history"):
        merged(epochs((0, 0), (1, 100)), epochs((0, 0), (1, 150)))


@pytest.mark.parametrize(
    "lineage", [epochs((0, 0), (1, 100)), epochs((1, 250)), epochs((0, 0)), epochs((0, 0), (1, 100), (5, 310))], ids=str
)
def test_a_log_that_lacks_an_epoch_of_the_archive_is_of_another_history(lineage: tuple[EpochEntry, ...]) -> None:
    """It has offset 399 and knows nothing of epoch 2 from offset 200 on: what it holds there was written by another leader."""
    with pytest.raises(Conflict, match="another history"):
        merged(epochs((0, 0), (1, 100), (2, 200)), lineage)


def test_a_log_that_puts_an_epochs_start_behind_where_the_archive_begins_with_it_is_of_another_history() -> None:
    """At offset 120 the archive has a record of epoch 1, the log one of epoch 0."""
    before = manifest(entry(100, 300), log_start_offset=100, leader_epochs=epochs((1, 100), (2, 200)))
    with pytest.raises(Conflict, match="another history"):
        segment_copied(before, entry(300, 400), epochs((0, 0), (1, 150), (2, 200)), "", 7)


def test_an_epoch_that_starts_below_the_archives_end_is_of_another_history() -> None:
    """The archive knows its lineage up to its end, so what it has of [250, 300) was written in epoch 2."""
    with pytest.raises(Conflict, match="another history"):
        merged(epochs((0, 0), (1, 100), (2, 200)), epochs((0, 0), (1, 100), (2, 200), (5, 250)))
    with pytest.raises(Conflict, match="another history"):
        merged(epochs((0, 0), (1, 100), (2, 200)), epochs((5, 250)))
