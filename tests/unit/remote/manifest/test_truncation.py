"""What a manifest drops from a fork on, in pages, too: planned without a store, pages kept in a dict."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from archive_fakes import CountingIds
from made_manifests import entry, manifest

from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from remote.manifest import invariants
from remote.manifest.gaps import Gap
from remote.manifest.model import Deleting, Item, Limits, Loss, Manifest, PageRef
from remote.manifest.paging import within_limits
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.truncation import truncation

LIMITS = Limits(inline_max=2, page_entries=2, fan_out=2)
EPOCHS = (EpochEntry(0, 0), EpochEntry(1, 40), EpochEntry(3, 50))


class Pages:
    def __init__(self) -> None:
        self.items: dict[str, tuple[Item, ...]] = {}
        self.ids = CountingIds()

    def read(self, ref: PageRef) -> tuple[Item, ...]:
        return self.items[ref.name]

    def within_limits(self, some: Manifest) -> Manifest:
        after, made = within_limits(some, self.read, self.ids.new_id, 42, LIMITS)
        self.items |= {page.ref.name: page.items for page in made}
        return after

    def below(self, items: tuple[Item, ...]) -> list[SegmentEntry]:
        return [e for i in items for e in ([i] if isinstance(i, SegmentEntry) else self.below(self.items[i.name]))]

    def truncated(self, some: Manifest, fork: int) -> Manifest:
        """As a commit does it."""
        step = truncation(some, fork, self.read, self.ids.new_id)
        self.items |= {page.ref.name: page.items for page in step.made}
        after = replace(step.applied(some, "kept", 9), version=some.version + 1)
        invariants.check(some, after)
        return after


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.mark.parametrize("fork", range(0, 141, 5))
def test_what_reaches_above_the_fork_waits_to_be_deleted_wherever_it_lies(pages: Pages, fork: int) -> None:
    entries = [entry(10 * n, 10 * n + 10) for n in range(14)]
    some = pages.within_limits(manifest(*entries, leader_epochs=EPOCHS))
    assert max(ref.level for ref in some.pages) > 0
    after = pages.truncated(some, fork)
    assert pages.below((*after.pages, *after.entries)) == [e for e in entries if e.end_offset <= fork]
    assert sorted(pages.below(tuple(d.item for d in after.deleting)), key=lambda e: e.base_offset) == [
        e for e in entries if e.end_offset > fork
    ]
    assert (after.end_offset, after.gaps) == (fork // 10 * 10, ())
    assert after.leader_epochs == tuple(e for e in EPOCHS if e.start_offset < fork)
    assert [(d.fork_offset, d.start, d.end, d.topic_id) for d in after.diverged] == [(fork, fork // 10 * 10, 140, "kept")]


def test_gaps_and_losses_stay_below_the_new_end_alone() -> None:
    some = manifest(entry(0, 10), entry(20, 30), entry(40, 50), losses=(Loss(10, 20, "it left", 3), Loss(50, 60, "it left", 3)))
    after = truncation(some, 35, lambda ref: (), CountingIds().new_id).applied(some, "kept", 9)
    assert after.gaps == some.gaps[:1]
    assert after.losses == some.losses[:1]


def test_what_only_a_segment_held_that_goes_is_a_gap_that_says_why(pages: Pages) -> None:
    """Replicas rolled at other offsets: one of the segments that overlap ends below the fork, the other reaches above it."""
    some = manifest(entry(0, 10), entry(10, 40), entry(20, 30))
    after = pages.truncated(some, 35)
    assert [(g.start, g.end) for g in after.gaps] == [(10, 20)]
    assert "diverged" in after.gaps[0].reason
    assert after.end_offset == 30


def test_a_hole_that_opens_within_a_page_is_a_gap_too(pages: Pages) -> None:
    entries = [entry(0, 10), entry(10, 40), entry(20, 30), entry(40, 50), entry(50, 60)]
    some = replace(manifest(*entries))
    inline = within_limits(some, pages.read, pages.ids.new_id, 42, Limits(inline_max=1, page_entries=4, fan_out=2))
    pages.items |= {page.ref.name: page.items for page in inline[1]}
    assert len(inline[0].pages) == 1
    after = pages.truncated(inline[0], 35)
    assert [(g.start, g.end) for g in after.gaps] == [(10, 20)]


def test_a_second_truncation_may_fork_below_the_first_one(pages: Pages) -> None:
    once = pages.truncated(manifest(*(entry(a, b) for a, b in pairwise(range(0, 60, 10)))), 40)
    twice = pages.truncated(once, 20)
    assert [d.fork_offset for d in twice.diverged] == [40, 20]
    assert [e.end_offset for e in twice.entries] == [10, 20]


def test_a_truncation_applies_to_no_other_version_than_it_was_planned_on() -> None:
    some = manifest(entry(0, 10), entry(10, 20), put_id="a")
    step = truncation(some, 10, lambda ref: (), CountingIds().new_id)
    later = replace(some, put_id="b")
    assert step.applied(later, "kept", 9) is later


def test_where_too_much_waits_to_be_deleted_nothing_is_given_up() -> None:
    some = manifest(entry(20, 30), log_start_offset=20, deleting=(Deleting(entry(0, 10), 5),))
    step = truncation(some, 25, lambda ref: (), CountingIds().new_id)
    with pytest.raises(Invalid, match="tiering expire"):
        step.applied(some, "kept", 9, deleting_max=1)


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(lambda m: replace(m, diverged=()), id="does not tell"),
        pytest.param(lambda m: replace(m, diverged=(replace(m.diverged[0], fork_offset=40),)), id="tells a later fork"),
    ],
)
def test_nothing_above_the_start_is_deleted_but_by_a_truncation_that_tells_its_fork(
    break_it: Callable[[Manifest], Manifest],
) -> None:
    some = manifest(*(entry(a, b) for a, b in pairwise(range(0, 50, 10))))
    after = replace(truncation(some, 20, lambda ref: (), CountingIds().new_id).applied(some, "kept", 9), version=2)
    invariants.check(some, after)
    with pytest.raises(Invalid, match="or above a fork"):
        invariants.check(some, break_it(after))
    later = replace(after, version=3, entries=after.entries[:1], deleting=(*after.deleting, Deleting(after.entries[1], 9)))
    with pytest.raises(Invalid, match="or above a fork"):
        invariants.check(after, replace(later, gaps=(Gap(10, 20, "x", 1),) if later.end_offset == 20 else ()))
