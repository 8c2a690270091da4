"""Random lives of a partition at small limits, beside a plain list of entries: copies in any order, retention, deletions."""

from collections.abc import Iterable

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from made_manifests import PATH, assert_sound_chain, entry

from local_log.formats.checkpoints import EpochEntry, epochs_before, epochs_from
from remote.manifest import codec, invariants
from remote.manifest.entries import Entries, Pages
from remote.manifest.model import Limits, Manifest, PageRef, covers, missing_ranges, never_archived
from remote.manifest.paging import has_below
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import deleted, retained, segment_copied
from remote.read.plan import Span, spans_and_gaps

pytestmark = pytest.mark.slow

LIMITS = Limits(inline_max=4, page_entries=2, fan_out=2, deleting_max=5)
START = 3
LINEAGE = (EpochEntry(0, 0), EpochEntry(1, 40), EpochEntry(4, 90))


def in_order(entries: Iterable[SegmentEntry]) -> list[tuple[int, int, str]]:
    return sorted((e.base_offset, e.end_offset, e.segment_id) for e in entries)


class Lives(RuleBasedStateMachine):
    """`named` and `waiting` are what a plain list holds; `held` are the offsets that were ever copied."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.pages = Pages(self.store, PATH, pages_max=1_000)
        self.writer = ManifestWriter(self.store, PATH, FixedClock(), CountingIds(), "a", 0, LIMITS)
        self.manifest = never_archived(PATH.topic, PATH.topic_id, PATH.partition, START)
        self.named: dict[str, SegmentEntry] = {}
        self.gone: set[str] = set()
        self.held: set[int] = set()

    @property
    def entries(self) -> Entries:
        return Entries(self.manifest, self.pages)

    def waiting(self) -> list[SegmentEntry]:
        return [e for d in self.manifest.deleting for e in self.entries.deleting(d)]

    @rule(base=st.integers(0, 120), length=st.integers(1, 15), timestamp=st.integers(0, 50))
    def copy(self, base: int, length: int, timestamp: int) -> None:
        self._copy(base, length, timestamp)

    @rule(lengths=st.lists(st.integers(1, 9), min_size=3, max_size=8))
    def go_on(self, lengths: list[int]) -> None:
        for length in lengths:
            self._copy(self.manifest.end_offset, length, 2 * length)

    def _copy(self, base: int, length: int, timestamp: int) -> None:
        of_batches = epochs_from(epochs_before(LINEAGE, base + length), base)
        log_end = max(self.manifest.end_offset, base + length)
        one = entry(base, base + length, leader_epochs=of_batches, max_timestamp_ms=timestamp, log_size=100 + length)
        news = not self.held.issuperset(range(max(base, self.manifest.log_start_offset), base + length))
        self.manifest = self.writer.commit(self.first(), lambda m: segment_copied(m, one, LINEAGE, "lost", 7, log_end=log_end))
        assert self.entries.holds(one) == news
        if news:
            self.named[one.segment_id] = one
            self.held.update(range(base, base + length))

    @rule(ahead=st.integers(1, 9), length=st.integers(1, 9))
    def leave_a_gap(self, ahead: int, length: int) -> None:
        self._copy(self.manifest.end_offset + ahead, length, 5)

    @rule(at=st.integers(0, 9), length=st.integers(1, 4))
    def fill_gaps(self, at: int, length: int) -> None:
        for gap in self.manifest.gaps[at:]:
            self._copy(gap.start, length, 6)

    @rule(by=st.integers(-3, 20))
    def retain(self, by: int) -> None:
        before = self.manifest.log_start_offset
        self._retain(before + by)
        assert self.manifest.log_start_offset == max(before + by, before)
        assert codec.decode(codec.encode(self.manifest), "") == self.manifest

    def _retain(self, start: int) -> None:
        self.manifest = self.writer.commit(self.first(), lambda m: retained(m, start, 9, deleting_max=LIMITS.deleting_max))

    @rule()
    def delete(self) -> None:
        while self.manifest.deleting or has_below(self.manifest):
            before = len(in_order(self.entries)) + len(self.waiting())
            ids = [d.id for d in self.manifest.deleting]
            objects = [e.segment_id for e in self.waiting()]
            self.manifest = self.writer.commit(self.first(), lambda m, ids=ids: deleted(m, ids))
            for segment_id in objects:
                assert self.named.pop(segment_id).end_offset <= self.manifest.log_start_offset
            self._retain(self.manifest.log_start_offset)
            after = len(in_order(self.entries)) + len(self.waiting())
            assert after < before or self.manifest.deleting
        assert all(e.end_offset > self.manifest.log_start_offset for e in self.named.values())

    def first(self) -> Manifest:
        return never_archived(PATH.topic, PATH.topic_id, PATH.partition, START)

    @invariant()
    def all_entries_are_there_once_and_in_order(self) -> None:
        found = [*self.entries]
        assert [e.base_offset for e in found] == sorted(e.base_offset for e in found)
        assert in_order([*found, *self.waiting()]) == in_order(self.named.values())
        assert self.manifest.segment_count == len(found)
        assert self.manifest.log_bytes == sum(e.log_size for e in found)
        assert self.manifest.aux_bytes == sum(e.aux_size for e in found)

    @invariant()
    def every_search_finds_what_a_list_has(self) -> None:
        found = [*self.entries]
        for start in range(0, 200, 23):
            for length in (1, 40):
                overlapping = [e for e in found if e.base_offset < start + length and e.end_offset > start]
                assert [*self.entries.overlapping(start, start + length)] == overlapping
                late = [e for e in overlapping if e.max_timestamp_ms >= start // 3]
                assert [*self.entries.as_late_as(start // 3, start, start + length)] == late
        assert self.entries.newest() == max(found, key=lambda e: e.end_offset, default=None)
        assert self.entries.latest() == max(found, key=lambda e: e.max_timestamp_ms, default=None)

    @invariant()
    def the_gaps_are_what_no_entry_covers(self) -> None:
        start, end = self.manifest.log_start_offset, self.manifest.end_offset
        missing = set(range(start, end)) - self.held
        assert {o for g in self.manifest.gaps for o in range(g.start, g.end)} == missing
        assert [(g.start, g.end) for g in self.manifest.gaps] == [*missing_ranges(self.manifest)]
        assert end == max([start, *(o + 1 for o in self.held)])
        for some in range(0, 140, 7):
            assert covers(self.manifest, some, some + 9) == self.held.issuperset(range(max(some, start), some + 9))
        if start < end:
            spans = [
                p for p in spans_and_gaps(self.manifest, self.entries.overlapping(start, end), start, end) if isinstance(p, Span)
            ]
            assert [o for s in spans for o in range(s.start, s.end)] == sorted(set(range(start, end)) & self.held)

    @invariant()
    def every_list_is_short(self) -> None:
        invariants.check_bounds(self.manifest, LIMITS)
        refs = [*self.manifest.pages]
        while refs:
            ref = refs.pop()
            items = self.entries.pages.read(ref)
            assert 0 < len(items) <= 2 * (LIMITS.fan_out if ref.level else LIMITS.page_entries)
            refs += [i for i in items if isinstance(i, PageRef)]

    def teardown(self) -> None:
        if self.manifest.version:
            assert assert_sound_chain(self.store) == self.manifest


Lives.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestLives = Lives.TestCase
