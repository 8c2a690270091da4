"""What may happen to a manifest."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from made_manifests import entry, epochs, manifest, paged

from local_log.formats.checkpoints import EpochEntry
from remote.manifest import invariants
from remote.manifest.gaps import Gap
from remote.manifest.model import Manifest, covers, missing_ranges
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.transitions import claimed, deleted, retained, segment_copied, source_seen

EMPTY = manifest(version=0)


def copied(before: Manifest, *entries: SegmentEntry, reason: str = "lost", now_ms: int = 7) -> Manifest:
    for one in entries:
        before = segment_copied(before, one, epochs((0, 0)), reason, now_ms)
    return before


def ranges(gaps: Iterable[Gap]) -> list[tuple[int, int]]:
    return [(gap.start, gap.end) for gap in gaps]


# copies


def test_the_first_copy_is_the_only_entry_and_brings_its_lineage() -> None:
    first = entry(0, 10)
    after = segment_copied(EMPTY, first, epochs((0, 0), (1, 4)), "", 7)
    assert after == replace(EMPTY, entries=(first,), leader_epochs=epochs((0, 0), (1, 4)))
    assert after.end_offset == 10


def test_a_copy_applied_twice_gives_the_same() -> None:
    once = copied(EMPTY, entry(0, 10), one := entry(20, 30))
    assert segment_copied(once, one, epochs((0, 0)), "another reason", 99) == once


def test_another_copy_of_what_is_archived_changes_nothing() -> None:
    before = copied(EMPTY, entry(0, 10), entry(10, 20))
    for base, end in ((0, 10), (10, 20), (0, 20), (5, 15), (3, 4)):
        assert copied(before, entry(base, end)) == before


def test_a_copy_below_the_log_start_offset_changes_nothing() -> None:
    before = replace(EMPTY, log_start_offset=10)
    assert copied(before, entry(0, 10)) == before
    assert copied(before, entry(0, 11)).entries != ()


def test_a_copy_that_leaves_a_range_open_names_the_gap_with_its_reason_and_time() -> None:
    after = copied(EMPTY, entry(0, 10), entry(25, 30), reason="refused: bad CRC", now_ms=42)
    assert after.gaps == (Gap(10, 25, "refused: bad CRC", 42),)


def test_a_range_open_behind_the_log_start_offset_is_a_gap() -> None:
    assert ranges(copied(replace(EMPTY, log_start_offset=5), entry(20, 30)).gaps) == [(5, 20)]


def test_a_gap_shrinks_splits_and_disappears_and_what_is_left_keeps_its_reason_and_time() -> None:
    before = copied(EMPTY, entry(0, 10), entry(40, 50), reason="first", now_ms=1)
    split = copied(before, entry(20, 25), reason="second", now_ms=2)
    assert split.gaps == (Gap(10, 20, "first", 1), Gap(25, 40, "first", 1))
    shrunk = copied(split, entry(5, 15), entry(35, 45), reason="third", now_ms=3)
    assert shrunk.gaps == (Gap(15, 20, "first", 1), Gap(25, 35, "first", 1))
    filled = copied(shrunk, entry(15, 20), entry(24, 36))
    assert filled.gaps == ()


def test_a_second_gap_has_a_reason_of_its_own() -> None:
    before = copied(EMPTY, entry(10, 20), reason="first", now_ms=1)
    after = copied(before, entry(30, 40), reason="second", now_ms=2)
    assert after.gaps == (Gap(0, 10, "first", 1), Gap(20, 30, "second", 2))


def test_overlapping_copies_are_kept_in_the_order_of_their_offsets() -> None:
    after = copied(EMPTY, entry(10, 20), entry(5, 12), entry(10, 30), entry(0, 6))
    assert [(e.base_offset, e.end_offset) for e in after.entries] == [(0, 6), (5, 12), (10, 20), (10, 30)]
    assert after.gaps == ()


def test_copies_may_come_in_any_order() -> None:
    parts = [entry(base, base + 10) for base in range(0, 50, 10)]
    for order in ([4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [0, 1, 2, 3, 4]):
        after = copied(EMPTY, *(parts[i] for i in order))
        assert after.entries == tuple(parts)
        assert after.gaps == ()


# retention


def waits(manifest: Manifest) -> list[tuple[int, int]]:
    return [(d.item.base_offset, d.item.end_offset) for d in manifest.deleting]


def test_retention_moves_whole_entries_below_the_new_start_and_keeps_the_one_it_cuts() -> None:
    before = copied(EMPTY, entry(0, 10), entry(10, 20), entry(20, 30))
    after = retained(before, 25, 42)
    assert after.log_start_offset == 25
    assert [(d.item, d.since_ms) for d in after.deleting] == [(before.entries[0], 42), (before.entries[1], 42)]
    assert after.entries == before.entries[2:]
    assert retained(after, 25, 99) == after
    assert waits(retained(after, 30, 99)) == [(0, 10), (10, 20), (20, 30)]


def test_retention_moves_pages_as_wholes_and_leaves_those_that_reach_above_the_start() -> None:
    one, two = paged(entry(0, 10), entry(10, 20)), paged(entry(20, 30), entry(30, 40))
    after = retained(manifest(entry(40, 50), pages=(one, two)), 35, 42)
    assert (after.pages, [d.id for d in after.deleting]) == ((two,), [one.name])


def test_the_start_never_goes_back() -> None:
    before = retained(copied(EMPTY, entry(0, 10), entry(10, 20)), 12, 42)
    for earlier in (0, 11, 12, -1):
        assert retained(before, earlier, 99) == before


def test_a_start_above_the_archives_end_leaves_nothing_and_the_end_is_the_start() -> None:
    after = retained(copied(EMPTY, entry(0, 10)), 25, 42)
    assert (after.entries, waits(after), after.log_start_offset, after.end_offset) == ((), [(0, 10)], 25, 25)
    assert after.leader_epochs == ()
    on = segment_copied(after, entry(30, 40), epochs((0, 0), (3, 20)), "lost", 50)
    assert (ranges(on.gaps), on.leader_epochs) == ([(25, 30)], epochs((0, 0), (3, 20)))


def test_gaps_below_the_start_go_and_one_that_it_cuts_keeps_its_reason_and_time() -> None:
    before = copied(EMPTY, entry(10, 20), entry(40, 50), reason="first", now_ms=1)
    assert ranges(before.gaps) == [(0, 10), (20, 40)]
    assert retained(before, 30, 42).gaps == (Gap(30, 40, "first", 1),)
    assert retained(before, 10, 42).gaps == (Gap(20, 40, "first", 1),)
    assert retained(before, 40, 42).gaps == ()


def test_no_more_waits_than_there_is_room_for_and_what_is_left_is_moved_when_there_is() -> None:
    before = copied(EMPTY, *(entry(base, base + 10) for base in range(0, 50, 10)))
    some = retained(before, 40, 42, deleting_max=3)
    assert (waits(some), some.log_start_offset) == ([(0, 10), (10, 20), (20, 30)], 40)
    assert retained(some, 40, 43, deleting_max=3) == some
    room = deleted(some, [some.deleting[1].id])
    assert waits(room) == [(0, 10), (20, 30)]
    assert waits(retained(room, 40, 44, deleting_max=3)) == [(0, 10), (20, 30), (30, 40)]


def test_what_is_deleted_is_dropped_by_its_id_and_dropping_it_again_changes_nothing() -> None:
    before = retained(copied(EMPTY, entry(0, 10), entry(10, 20), entry(20, 30)), 20, 42)
    ids = [d.id for d in before.deleting]
    assert waits(deleted(before, ids[:1])) == [(10, 20)]
    none = deleted(before, ids)
    assert none.deleting == ()
    assert deleted(none, ids) is none
    assert deleted(before, [before.entries[0].segment_id]) is before


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (0, ((0, 0), (2, 10), (4, 30))),
        (5, ((0, 5), (2, 10), (4, 30))),
        (10, ((2, 10), (4, 30))),
        (29, ((2, 29), (4, 30))),
        (30, ((4, 30),)),
        (40, ((4, 40),)),
        (50, ((4, 50),)),
    ],
)
def test_epochs_below_the_start_go_and_the_one_that_it_is_of_begins_there(start: int, left: tuple[tuple[int, int], ...]) -> None:
    """As Kafka's LeaderEpochFileCache.truncateFromStart leaves them."""
    before = segment_copied(EMPTY, entry(0, 50), epochs((0, 0), (2, 10), (4, 30)), "", 7)
    assert retained(before, start, 42).leader_epochs == epochs(*left)


def test_a_log_that_still_knows_the_epochs_that_went_is_of_the_same_history() -> None:
    lineage = epochs((0, 0), (2, 10), (4, 30))
    after = retained(segment_copied(EMPTY, entry(0, 50), lineage, "", 7), 20, 42)
    on = segment_copied(after, entry(50, 60), (*lineage, EpochEntry(5, 55)), "", 8)
    assert on.leader_epochs == epochs((2, 20), (4, 30), (5, 55))


# sources and writers


def test_a_source_seen_twice_gives_the_same() -> None:
    once = source_seen(EMPTY, "a", 5)
    assert once.local_log_start_offsets == {"a": 5}
    assert source_seen(once, "a", 5) is once
    assert source_seen(source_seen(once, "b", 3), "a", 9).local_log_start_offsets == {"a": 9, "b": 3}


def test_a_claim_takes_the_next_writer_epoch_and_nothing_else() -> None:
    assert claimed(replace(EMPTY, writer_epoch=4)) == replace(EMPTY, writer_epoch=5)


# any order, any overlap

END = 40


class Copies(RuleBasedStateMachine):
    """Segments copied in any order, overlapping too, against a set of offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.manifest = replace(EMPTY, log_start_offset=3)
        self.held: set[int] = set()
        self.reasons: dict[int, str] = {}

    @rule(base=st.integers(0, END - 1), length=st.integers(1, 15), reason=st.sampled_from(["first", "second"]))
    def copy(self, base: int, length: int, reason: str) -> None:
        one = entry(base, base + length)
        before, end = self.manifest, self.manifest.end_offset
        after = segment_copied(before, one, epochs((0, 0)), reason, 7)
        assert segment_copied(after, one, epochs((0, 0)), "again", 8) == after
        self.held.update(range(base, base + length))
        self.reasons |= dict.fromkeys(range(end, base), reason)
        if after != before:
            self.manifest = replace(after, version=before.version + 1)
            invariants.check(before, self.manifest)

    @invariant()
    def the_gaps_are_the_missing_ranges_with_the_reasons_of_their_first_sight(self) -> None:
        gaps = self.manifest.gaps
        assert ranges(gaps) == list(missing_ranges(self.manifest))
        assert {o for g in gaps for o in range(g.start, g.end)} == set(range(3, self.manifest.end_offset)) - self.held
        assert all(self.reasons[o] == g.reason for g in gaps for o in range(g.start, g.end))

    @invariant()
    def covers_says_what_the_set_says(self) -> None:
        for start in range(0, END + 16, 3):
            for end in range(start, END + 16):
                assert covers(self.manifest, start, end) == self.held.issuperset(range(max(start, 3), end))


Copies.TestCase.settings = settings(max_examples=60, stateful_step_count=15, deadline=None)
TestCopies = Copies.TestCase
