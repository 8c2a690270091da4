"""The steps of an atomic write over many partitions, in the manifest of each partition. Pure.

    intended    the write's entries are in `pending`, in every partition of its topics; no reader sees them
    (decided)   one record, put if absent, decides for all partitions whether the write is committed: see `decisions`
    resolved    the entries join the others if the write was committed, else they are removed

If a writer fails between the first step and the last, the next one completes them: readers follow the record, and every commit
to a partition resolves its pending write first. So a partition's end offset never changes while a write is pending.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from local_log.errors import Conflict
from remote.manifest.losses import has_nothing_for_readers
from remote.manifest.model import Manifest, PendingWrite, refuse_deleted
from remote.manifest.transitions import last_data_ms


def intended(manifest: Manifest, pending: PendingWrite, expected: Manifest) -> Manifest:
    """The manifest with a pending write whose entries follow `expected`, which is the manifest as readers see it.

    Raises Conflict if another writer has committed since then, Invalid for a topic that was deleted.
    """
    refuse_deleted(manifest)
    known = (expected.end_offset, expected.written, expected.local_log_start_offsets)
    if (manifest.end_offset, manifest.written, manifest.local_log_start_offsets) != known or manifest.pending:
        raise Conflict(f"{manifest.path}: another writer has written to it in the meantime; write again from its new end")
    return replace(manifest, pending=pending)


def resolved(manifest: Manifest, committed_at_ms: int | None) -> Manifest:
    """The manifest with the entries of its pending write if that was committed, else without them.

    `committed_at_ms` is the time of the decision to commit, None if the write was aborted. Readers see the write in all of its
    partitions from that time on, also before every manifest is resolved.
    """
    pending = manifest.pending
    if pending is None:
        return manifest
    if committed_at_ms is None:
        return replace(manifest, pending=None)
    return replace(
        manifest,
        entries=(*manifest.entries, *pending.entries),
        leader_epochs=pending.lineage,
        written=pending.mark,
        pending=None,
        committed_at_ms=max(manifest.committed_at_ms, committed_at_ms),
        data_committed_at_ms=max(last_data_ms(manifest), committed_at_ms) if pending.entries else manifest.data_committed_at_ms,
    )


def was_never_there(manifest: Manifest) -> bool:
    """Whether a partition only ever had an aborted write, or a local log of which no segment was copied.

    Readers do not see such a partition.
    """
    if has_nothing_for_readers(manifest):
        return True
    is_empty = not (manifest.entries or manifest.pages or manifest.deleting or manifest.gaps or manifest.log_start_offset)
    is_unused = manifest.written is None and not manifest.local_log_start_offsets and not manifest.is_deleted
    return manifest.version > 0 and is_empty and is_unused


def are_of_one_moment(partitions: Mapping[int, Manifest], unreadable: Iterable[int] = ()) -> bool:
    """Whether manifests of a topic's partitions, as readers see them, show the same writes.

    One that was read before a write was begun, beside one that was read when it had been committed, would show half of it. A
    partition that no write has reached, since a broker made it later, is none of their business.
    """
    marks = {n: m.written for n, m in partitions.items() if m.written is not None}
    if any(m.is_deleted for m in partitions.values()):
        return True  # there is nothing to read, and its partitions are swept one by one
    reached = {*marks, *unreadable}
    return len({m.attempt_id for m in marks.values()}) <= 1 and all(
        reached.issuperset(range(mark.partitions)) for mark in marks.values()
    )
