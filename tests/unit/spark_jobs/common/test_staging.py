"""What tasks leave for the commit: which marks count, and what nobody needs any more."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from local_log.errors import Corrupt
from remote.store.api import ObjectMeta, ObjectStore
from remote.store.open import open_store
from spark_jobs.common.commit_log import Bounds, File, Part
from spark_jobs.common.staging import KEEP_MS, REUSE_MS, Done, decode, encode, leftovers, mark_of, reusable, stem_of

PART = Part("orders.eu-1", "-" * 22, 3)
STEM = stem_of("0123456789abcdef", PART, (100, 200))
STAGED = f"{STEM}.attempt-0"
DONE = Done("attempt", PART, 100, 200, (File("topic=orders.eu-1/x.parquet", STAGED, 9, 4),), 5, 6)
NOW = 10**12


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    store = open_store(str(tmp_path / "target"))
    store.put_if_absent(mark_of(STEM), encode(DONE))
    return store


def listing(age_ms: int = 0, **sizes: int) -> list[ObjectMeta]:
    files = {STAGED: 4, mark_of(STEM): 100, **sizes}
    return [ObjectMeta(key, size, modified_ms=NOW - age_ms) for key, size in files.items() if size >= 0]


def test_a_mark_is_read_back_as_it_was_made() -> None:
    assert decode(encode(DONE), mark_of(STEM)) == DONE


def test_a_mark_of_before_keys_and_values_had_forms_is_read() -> None:
    older = json.dumps({name: value for name, value in json.loads(encode(DONE)).items() if not name.startswith("unparsed")})
    assert decode(older.encode(), mark_of(STEM)) == DONE


@pytest.mark.parametrize("wanted", [(100, 200), (0, 1000)])
def test_a_mark_whose_files_are_there_spares_what_it_has(store: ObjectStore, wanted: Bounds) -> None:
    assert list(reusable(store, {PART: (wanted,)}, listing(REUSE_MS), NOW)) == [DONE]


@pytest.mark.parametrize(
    "wanted", [{PART: ((101, 200),)}, {PART: ((0, 150), (150, 300))}, {replace(PART, partition=4): ((0, 300),)}]
)
def test_a_mark_that_is_not_all_wanted_stays_for_who_wants_it(store: ObjectStore, wanted: dict[Part, tuple[Bounds, ...]]) -> None:
    assert list(reusable(store, wanted, listing(), NOW)) == []
    assert [meta.key for meta in store.list("_tiering/")] == [mark_of(STEM)]


def test_of_marks_that_overlap_each_offset_counts_once(store: ObjectStore) -> None:
    found = listing()
    for start, end in [(100, 150), (150, 200), (190, 250), (200, 300), (300, 310)]:
        stem = stem_of("0123456789abcdef", PART, (start, end))
        done = replace(DONE, start=start, end=end, files=(replace(DONE.files[0], staged=f"{stem}.attempt-0"),))
        store.put_if_absent(mark_of(stem), encode(done))
        found += [ObjectMeta(key, 4, modified_ms=NOW) for key in (mark_of(stem), f"{stem}.attempt-0")]
    bounds = [(done.start, done.end) for done in reusable(store, {PART: ((0, 1000),)}, found, NOW)]
    assert bounds == [(100, 200), (200, 300), (300, 310)]


@pytest.mark.parametrize(
    "found", [listing(REUSE_MS + 1), listing(**{STAGED: -1}), listing(**{STAGED: 3})], ids=["old", "gone", "cut"]
)
def test_a_mark_that_is_old_or_whose_files_are_not_whole_is_deleted(store: ObjectStore, found: list[ObjectMeta]) -> None:
    assert list(reusable(store, {PART: ((100, 200),)}, found, NOW)) == []
    assert [meta.key for meta in store.list("_tiering/")] == []


def test_what_is_of_covered_offsets_is_left_over_and_marks_go_first() -> None:
    assert leftovers(listing(), {PART: ((0, 150), (90, 200))}, NOW) == (mark_of(STEM), STAGED)


@pytest.mark.parametrize(
    "covered", [{}, {PART: ((0, 199),)}, {PART: ((101, 300),)}, {Part("orders.eu-1", "b" * 22, 3): ((0, 300),)}]
)
def test_what_may_still_be_committed_stays_until_it_is_a_week_old(covered: dict[Part, tuple[tuple[int, int], ...]]) -> None:
    assert leftovers(listing(KEEP_MS), covered, NOW) == ()
    assert leftovers(listing(KEEP_MS + 1), covered, NOW) == (mark_of(STEM), STAGED)


def test_what_is_no_name_of_ours_is_left_alone() -> None:
    assert leftovers([ObjectMeta("_tiering/staging/readme.txt", 1, modified_ms=0)], {}, NOW) == ()


@pytest.mark.parametrize("body", [b"", b"{}", b"[]"])
def test_what_is_no_mark_is_corrupt_and_names_its_key(body: bytes) -> None:
    with pytest.raises(Corrupt, match="some-key"):
        decode(body, "some-key")
