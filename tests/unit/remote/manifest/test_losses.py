"""What left every local log before it was archived, as a manifest alone can know it."""

from dataclasses import replace

from made_manifests import entry, manifest

from local_log.formats.checkpoints import EpochEntry
from remote.manifest.codec import decode, encode
from remote.manifest.gaps import NO_BATCH, Gap
from remote.manifest.losses import (
    DELETED_BEFORE_COPY,
    GONE,
    Seen,
    acknowledged,
    gone_since_ms,
    local_deletions_recorded,
    lost_offsets,
    lost_ranges,
    lost_since_ms,
    source_gone,
    unacknowledged,
)
from remote.manifest.model import Loss, Manifest
from remote.manifest.stamped_json import read_stamped
from remote.manifest.transitions import first_seen, retained, segment_copied, source_seen, topic_deleted

EPOCHS = (EpochEntry(0, 0),)
NOW_MS = 1_780_000_000_000


def seen(start: int, end: int = 200, source: str = "a", held: tuple[tuple[int, int], ...] = ()) -> Seen:
    return Seen(source, start, (*held, (start, end)))


def of_source(*entries: tuple[int, int], start: int = 0, end: int = 150, **fields: object) -> Manifest:
    """A manifest of these entries whose source `a` had `[start, end)` when it was last told."""
    return source_seen(manifest(*(entry(*e) for e in entries), **fields), "a", start, end)


def ranges(found: Manifest) -> list[tuple[int, int]]:
    return [(loss.start, loss.end) for loss in lost_ranges(found)]


def test_what_a_log_has_no_more_and_the_archive_never_got_is_lost() -> None:
    after = local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS)
    assert after.losses == (Loss(100, 120, DELETED_BEFORE_COPY, NOW_MS),)
    assert (lost_offsets(after), lost_since_ms(after)) == (20, NOW_MS)
    assert after.end_offset == 100
    assert after.gaps == ()


def test_a_partition_of_which_nothing_was_ever_archived_loses_from_its_first_known_start_on() -> None:
    first = replace(first_seen(manifest(version=0), "a", 0, 5), version=1)
    assert ranges(local_deletions_recorded(first, seen(50), NOW_MS)) == [(0, 50)]


def test_at_first_sight_nothing_is_lost() -> None:
    assert local_deletions_recorded(manifest(version=0), seen(50), NOW_MS) == manifest(version=0)


def test_told_twice_it_is_lost_once_and_since_the_first_time() -> None:
    once = local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS)
    assert local_deletions_recorded(once, seen(120), NOW_MS + 9) == once
    assert local_deletions_recorded(source_seen(once, "a", 120), seen(120), NOW_MS + 9).losses == once.losses


def test_a_loss_that_grows_stays_one_until_somebody_acknowledges_it() -> None:
    once = source_seen(local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS), "a", 120)
    assert local_deletions_recorded(once, seen(130), NOW_MS + 9).losses == (Loss(100, 130, DELETED_BEFORE_COPY, NOW_MS),)
    agreed = acknowledged(once, [(100, 120)], "jo", NOW_MS + 5)
    grown = local_deletions_recorded(agreed, seen(130), NOW_MS + 9)
    assert grown.losses == (
        Loss(100, 120, DELETED_BEFORE_COPY, NOW_MS, NOW_MS + 5, "jo"),
        Loss(120, 130, DELETED_BEFORE_COPY, NOW_MS + 9),
    )
    assert [(loss.start, loss.end) for loss in unacknowledged(grown)] == [(120, 130)]
    assert (lost_offsets(grown), lost_since_ms(grown)) == (10, NOW_MS + 9)


def test_what_was_shown_is_acknowledged_and_what_came_after_is_not() -> None:
    once = local_deletions_recorded(of_source((0, 100)), seen(140), NOW_MS)
    agreed = acknowledged(once, [(100, 120)], "jo", NOW_MS + 5)
    assert [(loss.start, loss.end, loss.acknowledged_by) for loss in agreed.losses] == [(100, 120, "jo"), (120, 140, "")]
    assert acknowledged(agreed, [(100, 120)], "al", NOW_MS + 7) == agreed


def test_what_the_archive_holds_or_has_given_up_by_its_own_retention_is_not_lost() -> None:
    assert ranges(local_deletions_recorded(of_source((0, 100)), seen(100), NOW_MS)) == []
    behind = retained(of_source((0, 100)), 100, NOW_MS)
    assert ranges(local_deletions_recorded(behind, seen(110), NOW_MS)) == [(100, 110)]
    lost = local_deletions_recorded(of_source((0, 100), (130, 150)), seen(140), NOW_MS)
    assert ranges(lost) == [(100, 130)]
    assert retained(lost, 120, NOW_MS).losses == (Loss(120, 130, DELETED_BEFORE_COPY, NOW_MS),)
    assert retained(lost, 150, NOW_MS).losses == ()


def test_an_inactive_segment_that_reaches_below_the_log_start_is_still_to_be_archived() -> None:
    assert ranges(local_deletions_recorded(of_source((0, 100)), seen(130, held=((90, 125),)), NOW_MS)) == [(125, 130)]


def test_what_another_source_had_when_it_was_last_told_is_not_lost() -> None:
    both = source_seen(of_source((0, 100)), "b", 50, 110)
    assert ranges(local_deletions_recorded(both, seen(120), NOW_MS)) == [(110, 120)]
    gone = source_gone(both, "b", 0, NOW_MS)
    assert ranges(local_deletions_recorded(gone, seen(120), NOW_MS)) == [(100, 120)]


def test_a_new_source_that_starts_later_loses_nothing_that_another_has() -> None:
    known = of_source((0, 100), end=130)
    assert ranges(local_deletions_recorded(known, seen(120, source="b"), NOW_MS)) == []
    assert ranges(local_deletions_recorded(known, seen(140, source="b"), NOW_MS)) == [(130, 140)]


def test_a_copy_from_another_replica_takes_the_loss_away() -> None:
    lost = local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS)
    after = segment_copied(lost, entry(90, 115), EPOCHS, "", NOW_MS)
    assert after.losses == (Loss(115, 120, DELETED_BEFORE_COPY, NOW_MS),)


def test_a_writer_that_knows_no_losses_fills_one_all_the_same() -> None:
    lost = local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS)
    filled = replace(lost, entries=(*lost.entries, entry(100, 110)))
    assert ranges(filled) == [(110, 120)]


def test_a_source_that_still_has_it_takes_the_loss_back() -> None:
    lost = local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS)
    assert local_deletions_recorded(lost, seen(50, 110, source="b"), NOW_MS).losses == (
        Loss(110, 120, DELETED_BEFORE_COPY, NOW_MS),
    )


def test_the_gap_that_a_later_copy_leaves_says_that_it_was_lost_and_since_when() -> None:
    lost = local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS)
    after = segment_copied(lost, entry(120, 130), EPOCHS, "never archived", NOW_MS)
    assert after.gaps == (Gap(100, 120, f"lost, known since 2026-05-28T20:26:40Z: {DELETED_BEFORE_COPY}", NOW_MS),)
    partly = segment_copied(lost, entry(125, 130), EPOCHS, "refused: bad CRC", NOW_MS)
    assert partly.gaps[0].reason == f"lost, known since 2026-05-28T20:26:40Z: {DELETED_BEFORE_COPY}; refused: bad CRC"


def test_a_damaged_segment_that_leaves_the_log_uncopied_is_lost_then() -> None:
    known = of_source((0, 100), (120, 150), reason="refused: bad CRC")
    assert ranges(local_deletions_recorded(known, seen(100), NOW_MS)) == []
    after = local_deletions_recorded(known, seen(130), NOW_MS)
    assert ranges(after) == [(100, 120)]
    assert after.gaps == (Gap(100, 120, f"lost, known since 2026-05-28T20:26:40Z: {DELETED_BEFORE_COPY}", 7),)


def test_what_compaction_has_emptied_is_not_lost() -> None:
    assert ranges(local_deletions_recorded(of_source((20, 100), reason=NO_BATCH), seen(90), NOW_MS)) == []


def test_a_gap_from_before_the_source_was_last_told_is_no_new_loss() -> None:
    known = of_source((0, 100), (120, 150), start=130, reason="never archived")
    assert ranges(local_deletions_recorded(known, seen(140), NOW_MS)) == []


def test_a_partition_that_is_gone_loses_what_was_not_archived_of_it() -> None:
    after = source_gone(of_source((0, 100), end=130), "a", 140, NOW_MS)
    assert after.losses == (Loss(100, 140, GONE, NOW_MS),)
    assert gone_since_ms(after) == NOW_MS
    assert source_gone(after, "a", 140, NOW_MS + 5) == after


def test_of_a_log_that_is_known_to_be_gone_what_somebody_has_seen_behind_its_end_is_lost_too() -> None:
    acknowledged_loss = acknowledged(source_gone(of_source((0, 100), end=130), "a", 140, NOW_MS), [(100, 140)], "jo", NOW_MS)
    after = source_gone(acknowledged_loss, "a", 150, NOW_MS + 5)
    assert [(loss.start, loss.end) for loss in unacknowledged(after)] == [(140, 150)]
    assert (after.local_log_end_offsets["a"], after.gone["a"]) == (150, NOW_MS)
    assert source_gone(of_source((0, 100), end=130), "a", 0, NOW_MS).losses == (Loss(100, 130, GONE, NOW_MS),)


def test_a_partition_that_moved_to_another_known_source_is_not_lost() -> None:
    both = source_seen(of_source((0, 100)), "b", 50, 110)
    moved = source_gone(both, "a", 190, NOW_MS)
    assert (moved.losses, gone_since_ms(moved)) == ((), None)
    assert ranges(source_gone(moved, "b", 120, NOW_MS)) == [(100, 190)]


def test_a_partition_that_comes_back_is_not_gone_and_what_it_still_has_is_not_lost() -> None:
    gone = source_gone(of_source((0, 100)), "a", 140, NOW_MS)
    back = source_seen(local_deletions_recorded(gone, seen(0, 130, source="b"), NOW_MS), "b", 0, 130)
    assert gone_since_ms(back) is None
    assert ranges(back) == [(130, 150)]


def test_of_a_topic_that_was_deleted_from_the_archive_nothing_is_lost() -> None:
    deleted = topic_deleted(local_deletions_recorded(of_source((0, 100)), seen(120), NOW_MS), NOW_MS)
    assert deleted.losses == ()
    assert local_deletions_recorded(deleted, seen(160), NOW_MS) == deleted
    assert source_gone(deleted, "a", 160, NOW_MS) == deleted


def test_a_manifest_without_losses_keeps_its_bytes() -> None:
    plain = manifest(entry(0, 10))
    value = read_stamped(encode(plain), "key")
    assert not {"losses", "gone", "local_log_end_offsets", "only_seen"} & value.keys()
    lost = acknowledged(local_deletions_recorded(of_source((0, 100)), seen(140), NOW_MS), [(100, 120)], "jo", NOW_MS)
    first, second = read_stamped(encode(lost), "key")["losses"]
    assert first == {
        "start": 100, "end": 120, "reason": DELETED_BEFORE_COPY, "noticed_at_ms": NOW_MS, "acknowledged_at_ms": NOW_MS,
        "acknowledged_by": "jo",
    }  # fmt: skip
    assert second == {"start": 120, "end": 140, "reason": DELETED_BEFORE_COPY, "noticed_at_ms": NOW_MS}
    assert decode(encode(lost), "key") == lost
