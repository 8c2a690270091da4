"""What moves to pages, so that a manifest stays short: planned without a store, pages kept in a dict."""

from dataclasses import replace

import pytest
from archive_fakes import CountingIds
from made_manifests import entry, manifest, paged

from local_log.errors import Invalid
from remote.manifest.gaps import Gap
from remote.manifest.model import Item, Limits, Manifest, PageRef
from remote.manifest.paging import NewPage, has_below, is_due, within_limits
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.transitions import retained

LIMITS = Limits(inline_max=4, page_entries=3, fan_out=2, deleting_max=8)


class Kept:
    """Brings manifests within their limits and keeps the pages; `made` are those of the last time."""

    def __init__(self) -> None:
        self.pages: dict[str, NewPage] = {}
        self.ids = CountingIds()
        self.read_names: list[str] = []

    def read(self, ref: PageRef) -> tuple[Item, ...]:
        self.read_names.append(ref.name)
        return self.pages[ref.name].items

    def within_limits(self, some: Manifest, limits: Limits = LIMITS) -> Manifest:
        self.read_names.clear()
        after, made = within_limits(some, self.read, self.ids.new_id, 42, limits)
        self.made = [page.ref for page in made]
        self.pages |= {page.ref.name: page for page in made}
        return after

    def below(self, items: tuple[Item, ...]) -> list[SegmentEntry]:
        return [e for i in items for e in ([i] if isinstance(i, SegmentEntry) else self.below(self.pages[i.name].items))]


def ten_by_ten(first: int, last: int) -> list[SegmentEntry]:
    return [entry(10 * n, 10 * n + 10) for n in range(first, last)]


@pytest.fixture
def kept() -> Kept:
    return Kept()


def test_a_manifest_within_its_limits_stays_as_it_is(kept: Kept) -> None:
    some = manifest(*ten_by_ten(0, 4))
    assert kept.within_limits(some) == some
    assert kept.made == kept.read_names == []
    assert not is_due(some, LIMITS)


def test_the_oldest_entries_become_a_page_and_the_newest_stay(kept: Kept) -> None:
    entries = ten_by_ten(0, 5)
    assert is_due(manifest(*entries), LIMITS)
    after = kept.within_limits(manifest(*entries))
    assert [*after.pages] == kept.made
    assert kept.below(after.pages) == entries[:3]
    assert [*after.entries] == entries[3:]
    assert kept.read_names == []


def test_as_many_pages_are_made_as_it_takes_and_the_oldest_of_a_level_become_one_of_the_next(kept: Kept) -> None:
    entries = ten_by_ten(0, 40)
    after = kept.within_limits(manifest(*entries))
    assert [ref.level for ref in after.pages] == sorted((ref.level for ref in after.pages), reverse=True)
    assert [ref.level for ref in after.pages] == [2, 2, 1, 0, 0]
    assert all(sum(ref.level == level for ref in after.pages) <= 2 for level in range(3))
    assert kept.below((*after.pages, *after.entries)) == entries
    assert all(page.ref.count == len(kept.below(page.items)) for page in kept.pages.values())


def test_every_page_comes_before_those_that_name_it(kept: Kept) -> None:
    kept.within_limits(manifest(*ten_by_ten(0, 40)))
    seen: set[str] = set()
    for ref in kept.made:
        assert {i.name for i in kept.pages[ref.name].items if isinstance(i, PageRef)} <= seen
        seen.add(ref.name)


def test_pages_that_were_made_on_the_way_and_are_not_named_are_not_written(kept: Kept) -> None:
    before = kept.within_limits(manifest(*ten_by_ten(0, 5)))
    late = [entry(10 * n + 5, 10 * n + 9) for n in (0, 0, 1, 1, 1)]
    entries = tuple(sorted((*before.entries, *late), key=lambda e: e.base_offset))
    after = kept.within_limits(retained(replace(before, entries=entries), 10, 7))
    named = {ref.name for ref in after.pages if isinstance(ref, PageRef)}
    assert {ref.name for ref in kept.made} <= named | {
        i.name for ref in kept.made for i in kept.pages[ref.name].items if isinstance(i, PageRef)
    }
    assert all(ref.min_end_offset > 10 for ref in after.pages)


def test_a_page_that_would_contradict_the_ledger_of_gaps_is_not_made(kept: Kept) -> None:
    some = manifest(*ten_by_ten(0, 5))
    with pytest.raises(Invalid, match=r"the gaps \[\(12, 15\)\] have entries"):
        kept.within_limits(replace(some, gaps=(Gap(12, 15, "lost", 7),)))
    holed = manifest(entry(0, 10), *ten_by_ten(2, 6))
    with pytest.raises(Invalid, match=r"the ranges \[\(10, 20\)\] have none"):
        kept.within_limits(replace(holed, gaps=()))


def test_out_of_a_page_that_reaches_over_the_start_a_pages_entries_are_taken_at_most_and_one_page_a_level_is_read(
    kept: Kept,
) -> None:
    limits = replace(LIMITS, deleting_max=1_000)
    before = kept.within_limits(manifest(*ten_by_ten(0, 100)), limits)
    top = before.pages[0].level
    assert top >= 4
    start = before.pages[0].end_offset - 15
    step = retained(before, start, 7)
    steps = 0
    while has_below(step):
        was = step
        step = kept.within_limits(step, limits)
        new = [d.item for d in step.deleting[len(was.deleting) :]]
        assert sum(isinstance(i, SegmentEntry) for i in new) <= 2 * limits.page_entries
        assert len(kept.read_names) <= top + 1
        assert len(kept.made) <= top + 1
        steps += 1
    assert steps == 1
    gone = kept.below(tuple(d.item for d in step.deleting))
    assert sorted(e.base_offset for e in gone) == [*range(0, start - 9, 10)]
    assert [e.base_offset for e in kept.below((*step.pages, *step.entries))] == [*range(len(gone) * 10, 1_000, 10)]


def test_what_is_below_the_start_stays_where_it_is_while_there_is_no_room_for_it(kept: Kept) -> None:
    limits = replace(LIMITS, deleting_max=2)
    before = kept.within_limits(manifest(*ten_by_ten(0, 11)), limits)
    full = kept.within_limits(retained(before, 85, 7, deleting_max=2), limits)
    assert len(full.deleting) == 2
    assert has_below(full)
    assert not is_due(full, limits)
    assert kept.within_limits(full, limits) == full


def test_a_page_without_room_for_all_that_comes_late_is_split(kept: Kept) -> None:
    before = kept.within_limits(manifest(*ten_by_ten(0, 5)))
    late = [entry(1 + n, 2 + n) for n in range(5)]
    after = kept.within_limits(replace(before, entries=tuple(sorted((*late, *before.entries), key=lambda e: e.base_offset))))
    assert [ref.count for ref in after.pages] == [4, 4]
    assert [ref.level for ref in after.pages] == [0, 0]
    bases = [e.base_offset for e in kept.below(after.pages)]
    assert bases == sorted(bases)


def test_a_manifest_that_may_hold_less_than_a_page_makes_shorter_pages(kept: Kept) -> None:
    limits = Limits(inline_max=2, page_entries=5, fan_out=2, deleting_max=8)
    entries = ten_by_ten(0, 3)
    after = kept.within_limits(manifest(*entries), limits)
    assert len(after.entries) <= 2
    assert [*kept.below(after.pages), *after.entries] == entries


def test_whether_something_lies_below_the_start_is_known_without_reading_a_page() -> None:
    some = manifest(entry(40, 50), pages=(paged(entry(0, 10), entry(10, 40)),))
    assert [has_below(replace(some, log_start_offset=start)) for start in (0, 9, 10, 40, 49)] == [False, False, True, True, True]
