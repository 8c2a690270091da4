"""A log whose entries lie in pages, at several levels, reads as the one whose entries all stand in the manifest."""

from dataclasses import replace
from itertools import pairwise

import pytest
from archive_fakes import CountingIds, Door, FixedClock, MemoryStore, verbs
from archived_worlds import ARCHIVED, World, read
from logs_to_archive import offsets_of

from remote.manifest.entries import Entries
from remote.manifest.gaps import Gap
from remote.manifest.model import Limits, Manifest
from remote.manifest.store import ManifestWriter, load_newest
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange, fetch_plan

LIMITS = Limits(inline_max=2, page_entries=2, fan_out=2)


@pytest.fixture(scope="module")
def paged(finer: World) -> dict[str, tuple[ArchivedLog, Door]]:
    """The archive's logs with a newest manifest of two entries; everything else is the archive's own."""
    logs = {}
    for name in ARCHIVED:
        manifest = finer.archived(name).manifest
        store = MemoryStore()
        store.objects = {meta.key: finer.store.get(meta.key) for meta in finer.store.list(manifest.path.prefix)}
        writer = ManifestWriter(store, manifest.path, FixedClock(), CountingIds(), "pager", 0, LIMITS)
        door = Door(store)
        logs[name] = (ArchivedLog(door, writer.commit(manifest, lambda m: m)), door)
    return logs


@pytest.mark.parametrize("name", ARCHIVED)
def test_a_paged_log_has_the_same_entries_records_and_aborted_transactions(
    finer: World, paged: dict[str, tuple[ArchivedLog, Door]], name: str
) -> None:
    plain, (log, _) = finer.archived(name), paged[name]
    assert len(log.manifest.entries) <= 2
    assert len(log.manifest.pages) > 0 or len(plain.manifest.entries) <= 2
    assert [*log.entries] == [*plain.manifest.entries]
    start, end = log.log_start_offset, log.end_offset
    assert (start, end) == (plain.log_start_offset, plain.end_offset)
    assert offsets_of(read(log, start, end, committed=True)) == offsets_of(read(plain, start, end, committed=True))
    assert log.aborted(start, end) == plain.aborted(start, end)
    assert log.latest_timestamp() == plain.latest_timestamp()


def test_a_paged_log_finds_the_same_offsets_by_time(finer: World, paged: dict[str, tuple[ArchivedLog, Door]]) -> None:
    plain, (log, _) = finer.archived("g-txn-0"), paged["g-txn-0"]
    start, end = log.log_start_offset, log.end_offset
    times = sorted(e.max_timestamp_ms for e in plain.manifest.entries)
    for timestamp in {t + by for t in times for by in (-1, 0, 1)} | {0, (times[0] + times[-1]) // 2}:
        for first in (start, (start + end) // 2):
            assert log.offset_for_time(timestamp, first, end) == plain.offset_for_time(timestamp, first, end)


def test_an_old_record_costs_a_page_a_level_more(paged: dict[str, tuple[ArchivedLog, Door]]) -> None:
    log, door = paged["g-txn-0"]
    levels = log.manifest.pages[0].level + 1
    assert levels >= 2
    entry = next(iter(log.entries))
    door.calls.clear()
    stored = load_newest(door, log.manifest.path)
    assert stored is not None
    cold = ArchivedLog(door, stored.manifest)
    next(cold.chunks(entry.base_offset + 1, entry.base_offset + 2))
    assert verbs(door.calls) == ["list", "get", *["get"] * levels, "get_range", "get_range"]
    door.calls.clear()
    next(cold.chunks(entry.base_offset + 1, entry.base_offset + 2))
    assert verbs(door.calls) == ["get_range"]


def test_a_plan_for_a_part_reads_only_the_pages_of_that_part(paged: dict[str, tuple[ArchivedLog, Door]]) -> None:
    log, door = paged["g-txn-0"]
    everything = [*log.entries]
    assert all(a.end_offset == b.base_offset for a, b in pairwise(everything))
    names = {*log.entries.page_names()}
    for entry in everything:
        door.calls.clear()
        entries = Entries.of(door, log.manifest)
        (span,) = fetch_plan(
            log.manifest, entries.overlapping(entry.base_offset, entry.end_offset), entry.base_offset, entry.end_offset
        )
        assert span.entry == entry
        assert len(door.calls) <= log.manifest.pages[0].level + 1 < len(names)


def test_a_gap_in_front_of_the_first_record_that_is_late_enough_is_told(finer: World) -> None:
    def without(manifest: Manifest, number: int) -> Manifest:
        gone = manifest.entries[number]
        entries = tuple(e for e in manifest.entries if e is not gone)
        return replace(manifest, entries=entries, gaps=(Gap(gone.base_offset, gone.end_offset, "lost", 7),))

    plain = finer.archived("g-txn-0")
    holed = ArchivedLog(finer.store, without(plain.manifest, 4))
    gap = holed.manifest.gaps[0]
    for timestamp in {e.max_timestamp_ms for e in plain.manifest.entries}:
        expected = plain.offset_for_time(timestamp, 0, plain.end_offset)
        assert expected is not None
        if expected.offset < gap.start:
            assert holed.offset_for_time(timestamp, 0, holed.end_offset) == expected
        else:
            with pytest.raises(MissingRange) as raised:
                holed.offset_for_time(timestamp, 0, holed.end_offset)
            assert (raised.value.start, raised.value.end) == (gap.start, gap.end)
            allowed = holed.offset_for_time(timestamp, 0, holed.end_offset, fail_on_data_loss=False)
            assert allowed is None or allowed.offset >= min(gap.end, expected.offset)
