"""Deep scrubs cut into tasks: every segment is in one of them, and together they ask no more often than they may."""

from dataclasses import replace

import pytest
from archive_fakes import MemoryStore
from scrubbed import LATER_MS, TXN, newest

from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Kind
from remote.scrub.scrub import walk
from remote.scrub.segment_runs import SegmentRun, requests_per_run, scrub_run, segment_runs
from remote.scrub.settings import ScrubSettings
from remote.scrub.steps import SegmentToRead
from remote.segment_bytes import StoredBytes


def cut(store: MemoryStore, bytes_max: int) -> tuple[SegmentRun, ...]:
    steps = walk(RequestBudget(store), ScrubSettings(deep=True), LATER_MS)
    return tuple(segment_runs((step for step in steps if isinstance(step, SegmentToRead)), bytes_max))


@pytest.mark.parametrize("bytes_max", [1, 30_000, 100_000, 1 << 40])
def test_each_segment_is_in_one_stretch_and_no_stretch_is_of_two_partitions(store: MemoryStore, bytes_max: int) -> None:
    parts = cut(store, bytes_max)
    of_txn = [e for part in parts if part.manifest.topic == TXN for e in part.entries]
    assert of_txn == list(newest(store).manifest.entries)
    assert all(part.bytes <= bytes_max or len(part.entries) == 1 for part in parts)
    assert len(parts) > 5 if bytes_max < 50_000 else True


def test_the_requests_of_a_stretch_are_foretold_where_segments_are_small(store: MemoryStore) -> None:
    for part in cut(store, 30_000):
        budget = RequestBudget(store)
        assert scrub_run(budget, StoredBytes, part).requests == part.requests == budget.requests


@pytest.mark.parametrize("encoding", ["identity", "zstd"])
def test_a_segment_that_was_deleted_since_the_scrub_began_is_no_damage(store: MemoryStore, encoding: str) -> None:
    """Its manifest does not name it any more: here the whole partition is gone, as after a deletion of the topic."""
    (part, *_) = cut(store, 1)
    part = replace(part, entries=tuple(replace(entry, encoding=encoding) for entry in part.entries))
    for key in [key for key in store.objects if key.startswith(part.manifest.path.prefix)]:
        del store.objects[key]
    found = scrub_run(RequestBudget(store), StoredBytes, part).found
    assert [finding.kind for one in found if one is not None for finding in one.findings] == [Kind.left_out]


@pytest.mark.parametrize("requests_max", [0, 1, 7, 26, 10_000])
def test_runs_share_all_requests_and_no_more(store: MemoryStore, requests_max: int) -> None:
    parts = cut(store, 30_000)
    shares = requests_per_run(parts, requests_max)
    assert len(shares) == len(parts)
    assert sum(shares) == requests_max
    store.calls.clear()
    done = [scrub_run(RequestBudget(store, share), StoredBytes, part) for part, share in zip(parts, shares, strict=True)]
    assert len(store.calls) <= requests_max
    assert sum(one.requests for one in done) == len(store.calls)
    read = [found for one in done for found in one.found]
    assert not any(found.findings for found in read if found is not None)
    assert requests_max < 10_000 or None not in read
