"""What a manifest has after the log cleaner has rewritten its log: planned without a store, pages kept in a dict."""

from dataclasses import replace
from itertools import combinations

import pytest
from archive_fakes import CountingIds
from made_manifests import entry, manifest

from local_log.errors import Conflict, Invalid, TopicDeleted
from local_log.formats.checkpoints import EpochEntry
from local_log.ranges import uncovered
from remote.manifest import invariants
from remote.manifest.gaps import COMPACTED, NO_BATCH, Gap
from remote.manifest.model import Item, Limits, Loss, Manifest, PageRef
from remote.manifest.paging import within_limits
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.superseding import superseding
from remote.manifest.transitions import deleted, topic_deleted

LIMITS = Limits(inline_max=2, page_entries=2, fan_out=2)
EPOCHS = (EpochEntry(0, 0),)


class Pages:
    def __init__(self) -> None:
        self.items: dict[str, tuple[Item, ...]] = {}
        self.ids = CountingIds()
        self.read_names: list[str] = []

    def read(self, ref: PageRef) -> tuple[Item, ...]:
        self.read_names.append(ref.name)
        return self.items[ref.name]

    def within_limits(self, some: Manifest) -> Manifest:
        after, made = within_limits(some, self.read, self.ids.new_id, 42, LIMITS)
        self.items |= {page.ref.name: page.items for page in made}
        return after

    def below(self, items: tuple[Item, ...]) -> list[SegmentEntry]:
        return [e for i in items for e in ([i] if isinstance(i, SegmentEntry) else self.below(self.items[i.name]))]

    def all_of(self, some: Manifest) -> list[SegmentEntry]:
        return sorted(self.below((*some.pages, *some.entries)), key=lambda e: e.base_offset)

    def superseded(self, some: Manifest, gone: list[SegmentEntry], *new: SegmentEntry) -> Manifest:
        """As a commit does it."""
        within = min(e.base_offset for e in gone), max(e.end_offset for e in gone)
        step = superseding(some, [e.segment_id for e in gone], within, self.read, self.ids.new_id)
        assert step is not None
        self.items |= {page.ref.name: page.items for page in (*step.made, *step.waiting)}
        after = step.applied(some, new, EPOCHS, 9)
        after = replace(self.within_limits(after), version=some.version + 1)
        invariants.check(some, after)
        return after


@pytest.fixture
def pages() -> Pages:
    return Pages()


def test_one_entry_takes_the_place_of_several(pages: Pages) -> None:
    a, b, c = entry(0, 10), entry(10, 20), entry(20, 30)
    new = entry(0, 20, log_size=50, record_count=3)
    after = pages.superseded(manifest(a, b, c), [a, b], new)
    assert after.entries == (new, c)
    assert [(d.item, d.since_ms) for d in after.deleting] == [(a, 9), (b, 9)]
    assert (after.gaps, after.end_offset) == ((), 30)


def test_what_was_emptied_is_a_gap_of_compaction(pages: Pages) -> None:
    a, b, c = entry(0, 10), entry(10, 20), entry(20, 30)
    after = pages.superseded(manifest(a, b, c), [a, b], entry(0, 8))
    assert after.gaps == (Gap(8, 20, NO_BATCH, 9, COMPACTED),)
    again = pages.superseded(after, [c], entry(25, 30))
    assert again.gaps == (Gap(8, 25, NO_BATCH, 9, COMPACTED),)


def test_nothing_at_all_may_be_left_of_them(pages: Pages) -> None:
    a, b = entry(0, 10), entry(10, 20)
    after = pages.superseded(manifest(a, b), [a])
    assert (after.entries, after.gaps) == ((b,), (Gap(0, 10, NO_BATCH, 9, COMPACTED),))


def test_offsets_that_others_hold_are_no_gap(pages: Pages) -> None:
    """An entry that begins below the local log stays, and reaches into what was cleaned."""
    a, b = entry(0, 15), entry(10, 20)
    after = pages.superseded(manifest(a, b, entry(20, 30)), [b], entry(15, 20))
    assert after.gaps == ()
    assert [e.base_offset for e in pages.all_of(after)] == [0, 15, 20]


def test_a_hole_stays_one_but_where_a_new_entry_fills_it(pages: Pages) -> None:
    a, b = entry(0, 10), entry(15, 20)
    some = replace(manifest(a, b), losses=(Loss(10, 15, "it left", 3),))
    after = pages.superseded(some, [b], entry(12, 20))
    assert [(g.start, g.end, g.kind) for g in after.gaps] == [(10, 12, "")]
    assert [(loss.start, loss.end) for loss in after.losses] == [(10, 12)]


def test_offsets_beside_a_hole_are_not_said_to_be_emptied(pages: Pages) -> None:
    """The two would be one missing range, of which a part was lost: then nothing is committed."""
    a, b = entry(0, 10), entry(15, 20)
    with pytest.raises(Invalid, match="every missing range is a named gap"):
        pages.superseded(manifest(a, b), [b], entry(17, 20))


@pytest.mark.parametrize("at", range(12))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_entries_in_pages_are_superseded_wherever_they_lie(pages: Pages, at: int, count: int) -> None:
    entries = [entry(10 * n, 10 * n + 10) for n in range(16)]
    some = pages.within_limits(manifest(*entries))
    assert max(ref.level for ref in some.pages) > 0
    gone = entries[at : at + count]
    new = entry(gone[0].base_offset, gone[-1].end_offset, log_size=30, record_count=2)
    after = pages.superseded(some, gone, new)
    assert pages.all_of(after) == [*entries[:at], new, *entries[at + count :]]
    assert [d.item for d in after.deleting] == gone
    assert (after.gaps, after.end_offset) == ((), 160)


@pytest.mark.parametrize(("first", "second"), list(combinations(range(0, 14, 3), 2)))
def test_a_log_that_is_cleaned_again_and_again_is_covered_all_the_time(pages: Pages, first: int, second: int) -> None:
    entries = [entry(10 * n, 10 * n + 10) for n in range(16)]
    some = pages.within_limits(manifest(*entries))
    for at in (first, second, first):
        known = pages.all_of(some)
        gone = [e for e in known if e.base_offset < 10 * at + 30 and e.end_offset > 10 * at]
        start, end = gone[0].base_offset, gone[-1].end_offset
        some = pages.superseded(some, gone, entry(start, end - 3, log_size=20))
        some = deleted(some, [d.id for d in some.deleting])
        ranges = sorted((e.base_offset, e.end_offset) for e in pages.all_of(some))
        assert list(uncovered(ranges, 0, 160)) == [(g.start, g.end) for g in some.gaps]
        assert all(gap.kind == COMPACTED for gap in some.gaps)


def test_pages_are_read_only_for_entries_that_lie_in_them(pages: Pages) -> None:
    entries = [entry(10 * n, 10 * n + 10) for n in range(16)]
    some = pages.within_limits(manifest(*entries))
    inline = list(some.entries[:1])
    pages.read_names.clear()
    assert superseding(some, [e.segment_id for e in inline], (0, 160), pages.read, pages.ids.new_id)
    assert pages.read_names == []
    assert superseding(some, [entries[0].segment_id], (0, 10), pages.read, pages.ids.new_id)
    assert len(pages.read_names) == 1 + some.pages[0].level


def test_nothing_is_planned_where_an_entry_is_gone_already() -> None:
    a, b = entry(0, 10), entry(10, 20)
    assert superseding(manifest(b), [a.segment_id, b.segment_id], (0, 20), lambda ref: (), CountingIds().new_id) is None


def test_a_plan_applies_to_no_other_version() -> None:
    a = entry(0, 10)
    some = manifest(a)
    step = superseding(some, [a.segment_id], (0, 10), lambda ref: (), CountingIds().new_id)
    assert step is not None
    later = replace(some, version=2, put_id="another")
    assert step.applied(later, [entry(0, 10)], (), 9) is later


def test_no_more_wait_to_be_deleted_than_may() -> None:
    a, b = entry(0, 10), entry(10, 20)
    some = manifest(a, b)
    step = superseding(some, [a.segment_id, b.segment_id], (0, 20), lambda ref: (), CountingIds().new_id)
    assert step is not None
    with pytest.raises(Invalid, match="Run tiering expire"):
        step.applied(some, [entry(0, 20)], (), 9, deleting_max=1)


@pytest.mark.parametrize("count", [16, 17, 1_000, 1_001, 3_000])
def test_where_one_takes_the_place_of_very_many_these_wait_in_pages(pages: Pages, count: int) -> None:
    known = [entry(n, n + 1) for n in range(count)]
    some = manifest(*known, entry(count, count + 1))
    step = superseding(some, [e.segment_id for e in known], (0, count), pages.read, pages.ids.new_id)
    assert step is not None
    after = step.applied(some, [entry(0, count, log_size=50)], EPOCHS, 9)
    invariants.check(some, replace(after, version=some.version + 1))
    assert len(after.deleting) == (16 if count == 16 else -(-count // 1_000))
    pages.items |= {page.ref.name: page.items for page in step.waiting}
    assert pages.below(tuple(d.item for d in after.deleting)) == known


def test_another_history_supersedes_nothing() -> None:
    a = entry(0, 10)
    some = manifest(a, leader_epochs=(EpochEntry(0, 0),))
    step = superseding(some, [a.segment_id], (0, 10), lambda ref: (), CountingIds().new_id)
    assert step is not None
    with pytest.raises(Conflict):
        step.applied(some, [entry(0, 10)], (EpochEntry(0, 0), EpochEntry(1, 5)), 9)


def test_nothing_is_superseded_of_a_topic_that_was_deleted() -> None:
    a = entry(0, 10)
    some = manifest(a)
    step = superseding(some, [a.segment_id], (0, 10), lambda ref: (), CountingIds().new_id)
    assert step is not None
    with pytest.raises(TopicDeleted):
        step.applied(topic_deleted(some, 5), [entry(0, 10)], (), 9)
