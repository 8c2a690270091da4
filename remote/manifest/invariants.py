"""What holds of every manifest and of every step from one to the next. Checked before each commit."""

from itertools import pairwise

from remote.errors import Invalid
from remote.manifest.model import Manifest, missing_ranges


def check(before: Manifest, after: Manifest) -> None:
    """Raises Invalid, naming what would break, unless `after` may follow `before`."""
    broken = [name for name, holds in _RULES.items() if not holds(before, after)]
    if broken:
        raise Invalid(
            f"{after.topic}-{after.partition}: manifest {after.version} is not committed, it would break: {'; '.join(broken)}"
        )


def _same_partition(before: Manifest, after: Manifest) -> bool:
    return (before.topic, before.topic_id, before.partition) == (after.topic, after.topic_id, after.partition)


def _one_step(before: Manifest, after: Manifest) -> bool:
    return after.version == before.version + 1


def _starts_and_epochs_never_go_back(before: Manifest, after: Manifest) -> bool:
    return after.log_start_offset >= before.log_start_offset and after.writer_epoch >= before.writer_epoch


def _holes_are_named(_: Manifest, after: Manifest) -> bool:
    return {(g.start, g.end) for g in after.gaps} == set(missing_ranges(after))


def _entries_are_sound(_: Manifest, after: Manifest) -> bool:
    ordered = all(a.base_offset <= b.base_offset for a, b in pairwise(after.entries))
    unique = len({e.segment_id for e in after.entries}) == len(after.entries)
    return ordered and unique and all(e.base_offset <= e.last_offset < e.end_offset for e in after.entries)


def _lineage_grows(_: Manifest, after: Manifest) -> bool:
    return all(a.epoch < b.epoch and a.start_offset <= b.start_offset for a, b in pairwise(after.leader_epochs))


def _nothing_is_forgotten(before: Manifest, after: Manifest) -> bool:
    kept = {e.segment_id for e in after.entries}
    return all(e.segment_id in kept or e.end_offset <= after.log_start_offset for e in before.entries)


_RULES = {
    "a manifest stays with its partition": _same_partition,
    "a version follows the one before it": _one_step,
    "log start offset and writer epoch never go back": _starts_and_epochs_never_go_back,
    "every missing range is a named gap": _holes_are_named,
    "entries are in order, unique and not empty": _entries_are_sound,
    "leader epochs and their start offsets grow": _lineage_grows,
    "an entry leaves only below the log start offset": _nothing_is_forgotten,
}
