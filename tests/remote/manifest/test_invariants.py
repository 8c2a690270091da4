"""What holds of every manifest and of every step to the next: each rule is broken once."""

from dataclasses import replace

import pytest
from made_manifests import TOPIC_ID, entry, manifest

from local_log.formats.checkpoints import EpochEntry
from remote.errors import Invalid
from remote.manifest.invariants import check
from remote.manifest.model import Gap, Manifest

A, B, C = entry(0, 10), entry(10, 20), entry(30, 40)
BEFORE = manifest(A, B, C, version=4, writer_epoch=3, leader_epochs=(EpochEntry(0, 0), EpochEntry(1, 15)))
AFTER = replace(BEFORE, version=5)


def assert_broken(after: Manifest, *rules: str) -> None:
    with pytest.raises(Invalid) as raised:
        check(BEFORE, after)
    text = str(raised.value)
    assert text.startswith(f"{after.topic}-{after.partition}: manifest {after.version} ")
    assert text.partition("it would break: ")[2].split("; ") == list(rules)


def test_the_next_version_of_the_same_may_follow() -> None:
    check(BEFORE, AFTER)


def test_overlapping_entries_are_legal() -> None:
    entries = (A, entry(5, 15), B, C)
    check(BEFORE, replace(AFTER, entries=entries))


@pytest.mark.parametrize("change", [{"topic": "other"}, {"topic_id": "B" + TOPIC_ID[1:]}, {"partition": 1}], ids=repr)
def test_a_manifest_of_another_partition_may_not_follow(change: dict[str, object]) -> None:
    assert_broken(replace(AFTER, **change), "a manifest stays with its partition")


@pytest.mark.parametrize("version", [3, 4, 6, 0])
def test_a_version_that_does_not_follow_may_not(version: int) -> None:
    assert_broken(replace(AFTER, version=version), "a version follows the one before it")


def test_the_log_start_offset_never_goes_back() -> None:
    before = replace(BEFORE, log_start_offset=5)
    with pytest.raises(Invalid, match="log start offset and writer epoch never go back"):
        check(before, AFTER)
    check(before, replace(AFTER, log_start_offset=5))
    check(before, replace(AFTER, log_start_offset=6))


def test_the_writer_epoch_never_goes_back() -> None:
    assert_broken(replace(AFTER, writer_epoch=2), "log start offset and writer epoch never go back")
    check(BEFORE, replace(AFTER, writer_epoch=4))


@pytest.mark.parametrize(
    "gaps",
    [
        (),
        (Gap(20, 29, "lost", 7),),
        (Gap(21, 30, "lost", 7),),
        (Gap(20, 25, "lost", 7), Gap(25, 30, "lost", 7)),
        (Gap(20, 30, "lost", 7), Gap(40, 50, "lost", 7)),
    ],
    ids=str,
)
def test_a_missing_range_has_a_gap_of_just_its_size(gaps: tuple[Gap, ...]) -> None:
    assert_broken(replace(AFTER, gaps=gaps), "every missing range is a named gap")


def test_a_hole_behind_the_log_start_offset_is_a_missing_range() -> None:
    after = manifest(entry(30, 40), log_start_offset=20, version=1)
    assert [(g.start, g.end) for g in after.gaps] == [(20, 30)]
    with pytest.raises(Invalid, match="every missing range is a named gap"):
        check(replace(after, version=0, entries=(), gaps=()), replace(after, gaps=()))


@pytest.mark.parametrize(
    "entries",
    [
        (B, A, C),
        (A, B, C, replace(C, base_offset=32)),
        (A, B, C, entry(35, 35)),
        (A, B, C, entry(35, 40, last_offset=34)),
        (A, B, C, entry(35, 40, last_offset=40)),
        (A, B, C, entry(38, 35)),
    ],
    ids=["out of order", "named twice", "empty", "last offset below the base", "last offset at the end", "ends before it starts"],
)
def test_entries_are_in_order_unique_and_not_empty(entries: tuple[object, ...]) -> None:
    with pytest.raises(Invalid, match="entries are in order, unique and not empty"):
        check(BEFORE, replace(AFTER, entries=entries))


@pytest.mark.parametrize("lineage", [[(0, 0), (0, 15)], [(1, 0), (0, 15)], [(0, 15), (1, 14)]], ids=str)
def test_leader_epochs_and_their_start_offsets_grow(lineage: list[tuple[int, int]]) -> None:
    entries = tuple(EpochEntry(*e) for e in lineage)
    assert_broken(replace(AFTER, leader_epochs=entries), "leader epochs and their start offsets grow")


def test_an_entry_leaves_only_below_the_log_start_offset() -> None:
    without = replace(AFTER, entries=(B, C), log_start_offset=9)
    with pytest.raises(Invalid, match="an entry leaves only below the log start offset"):
        check(BEFORE, replace(without, gaps=(Gap(9, 10, "lost", 7), *AFTER.gaps)))
    check(BEFORE, replace(without, log_start_offset=10))


def test_every_broken_rule_is_named() -> None:
    assert_broken(
        replace(AFTER, version=9, gaps=(), writer_epoch=0),
        "a version follows the one before it",
        "log start offset and writer epoch never go back",
        "every missing range is a named gap",
    )
