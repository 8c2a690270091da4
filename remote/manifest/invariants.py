"""What holds of every manifest and of every step from one to the next. Checked before each commit, and no page is read for it."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from local_log.errors import Invalid
from local_log.formats.primitives import INT64_MAX
from local_log.ranges import clipped, uncovered
from remote.manifest.model import (
    LIMITS,
    Deleting,
    Item,
    Limits,
    Manifest,
    PageRef,
    count_of,
    item_id,
    lacks_nothing,
    log_bytes_of,
    missing_ranges,
)
from remote.manifest.segment_entry import SegmentEntry


def check(before: Manifest, after: Manifest) -> None:
    """Raises Invalid, naming what would break, unless `after` may follow `before`."""
    broken = [name for name, holds in _RULES.items() if not holds(before, after)]
    if broken:
        raise Invalid(
            f"{after.topic}-{after.partition}: manifest {after.version} is not committed, it would break: {'; '.join(broken)}"
        )


def check_bounds(manifest: Manifest, limits: Limits = LIMITS) -> None:
    """Raises Invalid where a list of the manifest is longer than its limit."""
    levels = [ref.level for ref in manifest.pages]
    lengths = [
        ("entries", len(manifest.entries), limits.inline_max),
        ("items being deleted", len(manifest.deleting), limits.deleting_max),
        *((f"pages of level {level}", levels.count(level), limits.fan_out) for level in set(levels)),
    ]
    for name, length, length_max in lengths:
        if length > length_max:
            raise Invalid(f"{manifest.path}: a manifest of {length} {name} is not committed; there may be {length_max}")


def check_page(manifest: Manifest, entries: Sequence[SegmentEntry], others: Iterable[Item]) -> None:
    """Raises Invalid unless a page of these entries may stand in the manifest: its holes are the ledger's gaps, and no others.

    `others` may cover a hole, too: the pages and entries beside it.
    """
    start, end = entries[0].base_offset, max(e.end_offset for e in entries)
    start = max(start, manifest.log_start_offset)
    gaps = [(g.start, g.end) for g in manifest.gaps if g.start < end and g.end > start]
    holes = uncovered([(e.base_offset, e.end_offset) for e in entries], start, end)
    named = clipped(gaps, start, end)
    covered = sorted([*gaps, *((i.base_offset, i.end_offset) for i in others)])
    denied = [gap for gap in named if uncovered(holes, *gap)]
    unnamed = [hole for a, b in holes for hole in uncovered(covered, a, b)]
    if denied or unnamed:
        raise Invalid(
            f"{manifest.path}: a page of [{start}, {end}) is not written: "
            f"the gaps {denied} have entries in it, the ranges {unnamed} have none and are no gaps"
        )


def _same_partition(before: Manifest, after: Manifest) -> bool:
    return (before.topic, before.topic_id, before.partition) == (after.topic, after.topic_id, after.partition)


def _one_step(before: Manifest, after: Manifest) -> bool:
    return after.version == before.version + 1


def _starts_and_epochs_never_go_back(before: Manifest, after: Manifest) -> bool:
    return after.log_start_offset >= before.log_start_offset and after.writer_epoch >= before.writer_epoch


def _holes_are_named(_: Manifest, after: Manifest) -> bool:
    return {(g.start, g.end) for g in after.gaps} == set(missing_ranges(after))


def _entries_are_valid(_: Manifest, after: Manifest) -> bool:
    ordered = all(a.base_offset <= b.base_offset for a, b in pairwise(after.entries))
    ids = [item_id(i) for i in (*after.items, *(d.item for d in after.deleting))]
    return ordered and len(set(ids)) == len(ids) and all(e.base_offset <= e.last_offset < e.end_offset for e in after.entries)


def _pages_are_valid(_: Manifest, after: Manifest) -> bool:
    ordered = all(a.last_base_offset <= b.base_offset and a.level >= b.level for a, b in pairwise(after.pages))
    return ordered and all(map(_is_valid, after.pages))


def _is_valid(ref: PageRef) -> bool:
    in_order = ref.base_offset <= ref.last_base_offset < ref.end_offset and ref.base_offset < ref.min_end_offset <= ref.end_offset
    return in_order and ref.count > 0 and ref.level >= 0


def _lineage_grows(_: Manifest, after: Manifest) -> bool:
    return all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairwise(after.leader_epochs))


def _deleted_stays_deleted(before: Manifest, after: Manifest) -> bool:
    kept = not before.is_deleted or after.deleted_at_ms == before.deleted_at_ms
    return kept and not (after.is_deleted and after.end_offset > after.log_start_offset)


def _deleting_is_given_up(before: Manifest, after: Manifest) -> bool:
    """What reaches above a fork is given up by the one step that tells of it: a truncation, which keeps it elsewhere.

    All else is given up with the offsets below the log start offset, or for other entries that have its offsets, where the log
    cleaner has rewritten the log. Readers of those that it emptied pass over them, too.
    """
    known = {d.id for d in before.deleting}
    fork = after.diverged[-1].fork_offset if after.diverged[-1:] != before.diverged[-1:] else INT64_MAX
    new = [d.item for d in after.deleting if d.id not in known and d.item.end_offset > after.log_start_offset]
    return all(item.end_offset > fork or lacks_nothing(after, item.base_offset, item.end_offset) for item in new)


def _nothing_is_forgotten(before: Manifest, after: Manifest) -> bool:
    """Entries move to pages and to `deleting`, and only from there they leave: counted, since pages are not read for this."""
    kept = {d.id for d in after.deleting}
    known = {e.segment_id for e in before.entries}
    left = [d.item for d in before.deleting if d.id not in kept]
    added = [e for e in after.entries if e.segment_id not in known]
    had, has = _all_of(before.items, before.deleting), _all_of(after.items, after.deleting)
    return all(measured(has) - measured(added) >= measured(had) - measured(left) for measured in (_count, _bytes))


def _all_of(items: Iterable[Item], deleting: Iterable[Deleting]) -> list[Item]:
    return [*items, *(d.item for d in deleting)]


def _count(items: Iterable[Item]) -> int:
    return sum(map(count_of, items))


def _bytes(items: Iterable[Item]) -> int:
    return sum(map(log_bytes_of, items))


_RULES = {
    "a manifest stays with its partition": _same_partition,
    "a version follows the one before it": _one_step,
    "log start offset and writer epoch never go back": _starts_and_epochs_never_go_back,
    "every missing range is a named gap": _holes_are_named,
    "entries are in order, unique and not empty": _entries_are_valid,
    "pages are in order and not empty": _pages_are_valid,
    "only what lies below the log start offset or above a fork, or what others hold, is deleted": _deleting_is_given_up,
    "a topic that was deleted stays so, with nothing to read": _deleted_stays_deleted,
    "leader epochs and their start offsets grow": _lineage_grows,
    "an entry leaves only from among those that are being deleted": _nothing_is_forgotten,
}
