"""What holds of every manifest and of every step to the next: each rule is broken once."""

from dataclasses import replace

import pytest
from made_manifests import TOPIC_ID, entry, manifest, paged

from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from remote.manifest.gaps import COMPACTED, Gap
from remote.manifest.invariants import check, check_bounds, check_page
from remote.manifest.model import Deleting, Limits, Manifest

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


def test_entries_that_start_at_the_same_offset_are_legal() -> None:
    """Replicas whose segments start together do not roll together."""
    check(BEFORE, replace(AFTER, entries=(A, entry(0, 15), B, C)))


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


LEAVES = "an entry leaves only from among those that are being deleted"
BELOW = "only what lies below the log start offset or above a fork, or what others hold, is deleted"


def test_an_entry_leaves_only_by_being_deleted_below_the_log_start_offset() -> None:
    without = replace(AFTER, entries=(B, C), log_start_offset=10)
    assert_broken(without, LEAVES)
    waiting = replace(without, deleting=(Deleting(A, 7),))
    check(BEFORE, waiting)
    gap = Gap(9, 10, "lost", 7)
    assert_broken(replace(waiting, log_start_offset=9, gaps=(gap, *AFTER.gaps)), BELOW)
    check(waiting, replace(waiting, version=6, deleting=()))


def test_an_entry_is_deleted_where_others_hold_its_offsets_or_compaction_has_emptied_them() -> None:
    waiting = replace(AFTER, entries=(A, entry(5, 20), C), deleting=(Deleting(B, 7),))
    check(BEFORE, waiting)
    emptied = (Gap(10, 30, "compaction has left no batch in it", 7, COMPACTED),)
    check(BEFORE, replace(waiting, entries=(A, C), gaps=emptied))
    assert_broken(replace(waiting, entries=(A, C), gaps=(Gap(10, 30, "lost", 7),)), BELOW)
    at_the_end = replace(AFTER, entries=(A, B), gaps=(), deleting=(Deleting(C, 7),))
    assert_broken(at_the_end, BELOW)


def test_an_entry_that_leaves_is_missed_also_where_another_one_comes() -> None:
    assert_broken(replace(AFTER, entries=(entry(0, 10), B, C)), LEAVES)


def test_entries_may_move_to_a_page_that_has_all_of_them() -> None:
    page = paged(A, B)
    after = replace(AFTER, entries=(C,), pages=(page,))
    check(BEFORE, after)
    assert_broken(replace(after, pages=(replace(page, count=1),)), LEAVES)
    assert_broken(replace(after, pages=(replace(page, log_bytes=page.log_bytes - 1),)), LEAVES)


def test_a_page_may_be_deleted_below_the_log_start_offset() -> None:
    page = paged(A, B)
    before = replace(BEFORE, entries=(C,), pages=(page,))
    waiting = replace(AFTER, entries=(C,), log_start_offset=20, deleting=(Deleting(page, 7),))
    check(before, waiting)
    assert_broken(replace(waiting, deleting=()), LEAVES)
    check(waiting, replace(waiting, version=6, deleting=()))
    with pytest.raises(Invalid, match=BELOW):
        check(before, replace(waiting, log_start_offset=19, gaps=(Gap(19, 30, "lost", 7),)))


def test_a_gap_inside_of_a_page_is_as_the_ledger_has_it_unless_an_entry_fills_it() -> None:
    after = replace(AFTER, entries=(), pages=(paged(A, B, C),))
    check(BEFORE, after)
    filled = replace(after, version=6, entries=(entry(20, 30),))
    with pytest.raises(Invalid, match="every missing range is a named gap"):
        check(after, filled)
    check(after, replace(filled, gaps=()))


@pytest.mark.parametrize(
    "change",
    [
        {"count": 0},
        {"level": -1},
        {"last_base_offset": -1},
        {"min_end_offset": 0},
        {"min_end_offset": 21},
        {"last_base_offset": 20},
    ],
    ids=repr,
)
def test_pages_are_in_order_and_not_empty(change: dict[str, int]) -> None:
    good = replace(AFTER, entries=(C,), pages=(paged(A, B),))
    with pytest.raises(Invalid, match="pages are in order and not empty"):
        check(BEFORE, replace(good, pages=(replace(good.pages[0], **change),)))


def test_pages_of_a_higher_level_come_before_those_of_a_lower_one() -> None:
    one, two = paged(A), paged(B)
    check(BEFORE, replace(AFTER, entries=(C,), pages=(replace(one, level=1), two)))
    for pages in ((one, replace(two, level=1)), (two, one)):
        with pytest.raises(Invalid, match="pages are in order and not empty"):
            check(BEFORE, replace(AFTER, entries=(C,), pages=pages))


def test_no_list_of_a_manifest_is_longer_than_its_limit() -> None:
    limits = Limits(inline_max=3, page_entries=2, fan_out=1, deleting_max=1)
    check_bounds(replace(AFTER, pages=(paged(A), replace(paged(B), level=1)), deleting=(Deleting(A, 7),)), limits)
    for wrong in (
        {"entries": (A, A, A, A)},
        {"pages": (paged(A), paged(B))},
        {"deleting": (Deleting(A, 7), Deleting(B, 7))},
    ):
        with pytest.raises(Invalid, match=r"there may be [13]$"):
            check_bounds(replace(AFTER, **wrong), limits)


def test_a_page_agrees_with_the_ledger_of_gaps() -> None:
    check_page(AFTER, (A, B, C), ())
    check_page(AFTER, (A, B), ())
    with pytest.raises(Invalid, match=r"the gaps \[\(20, 30\)\] have entries"):
        check_page(AFTER, (A, B, entry(20, 25), C), ())
    with pytest.raises(Invalid, match=r"the ranges \[\(10, 20\)\] have none"):
        check_page(AFTER, (A, C), ())
    check_page(AFTER, (A, C), (B,))
    check_page(replace(AFTER, log_start_offset=15), (A, entry(15, 20)), ())


def test_every_broken_rule_is_named() -> None:
    assert_broken(
        replace(AFTER, version=9, gaps=(), writer_epoch=0),
        "a version follows the one before it",
        "log start offset and writer epoch never go back",
        "every missing range is a named gap",
    )
