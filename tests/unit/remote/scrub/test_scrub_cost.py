"""What a scrub costs in requests, and what it looks at when it may not look at everything."""

import pytest
from archive_fakes import Call, MemoryStore, verbs
from scrubbed import BIG, TXN, findings, found, newest, path

from remote.scrub.finding import Kind
from remote.scrub.settings import ScrubSettings


def requests(calls: list[Call]) -> dict[str, int]:
    return {verb: verbs(calls).count(verb) for verb in set(verbs(calls))}


def test_a_shallow_scrub_costs_one_listing_and_a_request_a_manifest(store: MemoryStore) -> None:
    versions = newest(store).manifest.version + newest(store, BIG).manifest.version
    store.calls.clear()
    findings(store)
    assert requests(store.calls) == {"list": 1, "get": versions}


def test_a_deep_scrub_costs_two_requests_a_small_segment_more(store: MemoryStore) -> None:
    segments = len(newest(store).manifest.entries) + len(newest(store, BIG).manifest.entries)
    store.calls.clear()
    findings(store, deep=True)
    assert requests(store.calls)["get_range"] == 2 * segments


def test_a_segment_is_read_in_chunks(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remote.segment.check.CHUNK_BYTES", 64 << 10)
    monkeypatch.setattr("local_log.formats.chunks.CHUNK_BYTES", 64 << 10)
    store.calls.clear()
    assert findings(store, deep=True, topics=(TXN,)) == []
    assert max(call[3] - call[2] for call in store.calls if call[0] == "get_range") <= 64 << 10


@pytest.mark.slow
def test_a_sample_is_the_same_each_time_another_with_another_seed_and_of_about_its_size(store: MemoryStore) -> None:
    def read(sample: float, seed: int = 0) -> set[str]:
        store.calls.clear()
        findings(store, deep=True, sample=sample, seed=seed)
        return {call[1] for call in store.calls if call[0] == "get_range" and call[1].endswith(".log")}

    everything = read(1.0)
    assert read(0.0) == set()
    assert read(0.5) == read(0.5)
    assert len({frozenset(read(0.5, seed)) for seed in range(6)}) > 3
    assert set().union(*(read(0.5, seed) for seed in range(8))) == everything
    settings = ScrubSettings(deep=True, sample=0.25)
    assert 2200 < sum(settings.includes(f"{n:032x}") for n in range(10_000)) < 2800


@pytest.mark.parametrize("deep", [False, True])
def test_no_more_requests_are_made_than_allowed_and_what_is_left_out_is_told(store: MemoryStore, deep: bool) -> None:
    store.calls.clear()
    findings(store, deep=deep)
    everything = len(store.calls)
    for requests_max in range(1, everything):
        store.calls.clear()
        told = findings(store, deep=deep, requests_max=requests_max)
        assert len(store.calls) == requests_max
        assert {f.kind for f in told} == {Kind.left_out}
    assert findings(store, deep=deep, requests_max=everything) == []


def test_with_few_requests_the_newest_manifest_and_its_objects_come_first(store: MemoryStore) -> None:
    key = path(store).segment(newest(store).manifest.entries[4].log_name)
    del store.objects[key]
    assert (Kind.missing_object, key) in found(store, requests_max=4)


def test_only_the_topics_that_are_asked_for_are_looked_at(store: MemoryStore) -> None:
    entry = newest(store).manifest.entries[4]
    del store.objects[path(store).segment(entry.log_name)]
    store.put_if_absent("notes.txt", b"")
    assert found(store, topics=(BIG,)) == []
    assert [kind for kind, _ in found(store, topics=(TXN,))] == [Kind.missing_object]
