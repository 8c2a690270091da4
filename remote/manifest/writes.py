"""What a write over many partitions does to the manifest of each: all of them have it, or none. Pure.

    intended    the write's entries stand in `pending`, in every partition of its topics; nobody reads them
    (decided)   one record, put if absent, says for all of them at once whether the write is committed: see `decisions`
    resolved    committed, the entries join the others; given up, they are forgotten

A write that is cut off between the first step and the last is ended by whoever comes next: readers see it as its record says,
and every commit to such a partition resolves it first. So a partition's end never moves while a write is pending there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from local_log.errors import Conflict
from remote.manifest.losses import has_nothing_for_readers
from remote.manifest.model import Manifest, PendingWrite
from remote.manifest.transitions import last_data_ms, refuse_deleted


def intended(manifest: Manifest, pending: PendingWrite, expected: Manifest) -> Manifest:
    """The manifest with a write that nobody sees yet, whose entries follow `expected`, as readers see that.

    Raises Conflict where somebody else has come in between, Invalid for a topic that was deleted.
    """
    refuse_deleted(manifest)
    known = (expected.end_offset, expected.written, expected.local_log_start_offsets)
    if (manifest.end_offset, manifest.written, manifest.local_log_start_offsets) != known or manifest.pending:
        raise Conflict(f"{manifest.path}: another writer has written to it in the meantime; write again from its new end")
    return replace(manifest, pending=pending)


def resolved(manifest: Manifest, committed_at_ms: int | None) -> Manifest:
    """The manifest without the write that was pending: with its entries if it was committed, else as if it had never been.

    `committed_at_ms` is when it was decided to be committed, None where it was not. From then on it is there, in all of its
    partitions, whenever each of their manifests takes it in.
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
    """Whether all that a partition ever had is a write that was not committed, or a log that nothing was copied of.

    To readers there is no such partition.
    """
    if has_nothing_for_readers(manifest):
        return True
    is_empty = not (manifest.entries or manifest.pages or manifest.deleting or manifest.gaps or manifest.log_start_offset)
    is_nobodys = manifest.written is None and not manifest.local_log_start_offsets and not manifest.is_deleted
    return manifest.version > 0 and is_empty and is_nobodys


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
