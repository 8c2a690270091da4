"""Manifests as rows: one version, the changes from one version to the next, the difference of two."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from local_log.errors import Corrupt, Newer
from remote.keys import PartitionPath
from remote.manifest import codec
from remote.manifest.chain import stored_versions, walk_chain
from remote.manifest.entries import Entries
from remote.manifest.losses import lost_offsets, new_losses
from remote.manifest.model import Deleting, Item, Manifest, PageRef, count_of, item_id, never_archived
from remote.manifest.pins import Pins
from remote.manifest.segment_entry import SegmentEntry, SegmentState
from remote.store.api import ObjectStore

Row = dict[str, Any]
_NAMED_MAX = 3


def full_row(manifest: Manifest, pins: Pins) -> Row:
    """A manifest version as stored, with the state of each segment, and the current pins."""
    row: Row = codec.as_stored(manifest)
    row["entries"] = [{**entry, "state": SegmentState.copy_finished} for entry in row["entries"]]
    row["deleting"] = [{**item, "state": SegmentState.delete_started} for item in row["deleting"]]
    row["signed_by"] = manifest.signed_by or None
    row["end_offset"] = manifest.end_offset
    row["segments"] = manifest.segment_count
    row["bytes"] = manifest.log_bytes + manifest.aux_bytes
    row["lost_offsets"] = lost_offsets(manifest)
    row["pins"] = {
        "live": [
            {"id": p.id, "owner": p.owner, "start": p.start, "end": p.end, "expires_at_ms": p.expires_at_ms} for p in pins.live
        ],
        "expired": [p.id for p in pins.expired],
        "damaged": [str(e) for e in pins.damaged],
    }
    return row


def summary(row: Mapping[str, Any]) -> Row:
    """The columns of `full_row` that fit on a line."""
    names = ("partition", "version", "writer", "writer_epoch", "committed_at_ms", "log_start_offset", "end_offset")
    lengths = {name: len(row[name]) for name in ("pages", "deleting", "gaps")}
    pins = {"pins": len(row["pins"]["live"]) + len(row["pins"]["damaged"])}
    lengths["lost"] = row["lost_offsets"]
    return {**{name: row[name] for name in names}, "segments": row["segments"], "bytes": row["bytes"], **lengths, **pins}


def history(store: ObjectStore, path: PartitionPath) -> Iterator[Row | Corrupt | Newer]:
    """A row for each stored version, newest first, with its changes; errors of the chain in their places.

    Raises Unavailable.
    """
    after: Manifest | None = None
    for before in walk_chain(store, path, [v.version for v in stored_versions(store, path)]):
        if not isinstance(before, Manifest):
            yield before
            continue
        if after is not None:
            yield _step(after, changes(before, after) if before.version == after.version - 1 else ["(its parent cannot be read)"])
        after = before
    if after is not None:
        first = never_archived(path.topic, path.topic_id, path.partition, after.log_start_offset)
        yield _step(after, changes(first, after) if after.version == 1 else ["(its parent is not stored any more)"])


def _step(manifest: Manifest, changed: Iterable[str]) -> Row:
    return {
        "partition": manifest.partition,
        "version": manifest.version,
        "committed_at_ms": manifest.committed_at_ms,
        "writer": manifest.writer,
        "writer_epoch": manifest.writer_epoch,
        "log_start_offset": manifest.log_start_offset,
        "end_offset": manifest.end_offset,
        "segments": manifest.segment_count,
        "changes": "; ".join(changed),
    }


def changes(before: Manifest, after: Manifest) -> Iterator[str]:
    """What a version changed, from the manifests alone; no page is read."""
    if after.writer_epoch != before.writer_epoch:
        yield f"claimed with writer epoch {after.writer_epoch}"
    if after.log_start_offset != before.log_start_offset:
        yield f"log start offset {before.log_start_offset} to {after.log_start_offset}"
    yield from _ranges(SegmentState.copy_finished, _new(after.entries, before.entries))
    yield from _ranges(SegmentState.delete_started, _new(_items(after.deleting), _items(before.deleting)))
    yield from _ranges(SegmentState.delete_finished, _new(_items(before.deleting), _items(after.deleting)))
    pages_made = len(_new(after.pages, before.pages))
    if pages_made:
        yield f"{pages_made} new page{'s' * (pages_made > 1)}"
    known, kept = ({(g.start, g.end) for g in m.gaps} for m in (before, after))
    yield from (f"gap [{start}, {end})" for start, end in sorted(kept - known))
    yield from (f"no more gap [{start}, {end})" for start, end in sorted(known - kept))
    yield from (f"lost [{start}, {end})" for start, end in new_losses(before, after))
    seen = {(loss.start, loss.end) for loss in before.losses if loss.acknowledged_at_ms}
    agreed = [loss for loss in after.losses if loss.acknowledged_at_ms and (loss.start, loss.end) not in seen]
    yield from (f"the loss of [{loss.start}, {loss.end}) acknowledged by {loss.acknowledged_by}" for loss in agreed)
    if after.diverged[-1:] != before.diverged[-1:]:
        fork = after.diverged[-1]
        yield f"truncated to offset {fork.fork_offset} as the log diverged; kept under topic id {fork.topic_id or '(nothing)'}"
    yield from (f"gone from {source}" for source in after.gone.keys() - before.gone.keys())
    for source, start in after.local_log_start_offsets.items():
        if before.local_log_start_offsets.get(source) != start:
            yield f"the local log of {source} starts at {start}"


def _items(deleting: Iterable[Deleting]) -> list[Item]:
    return [d.item for d in deleting]


def _new(items: Iterable[Item], known: Iterable[Item]) -> list[Item]:
    ids = {item_id(i) for i in known}
    return [i for i in items if item_id(i) not in ids]


def _ranges(state: SegmentState, items: list[Item]) -> Iterator[str]:
    if len(items) <= _NAMED_MAX:
        yield from (f"{state} [{i.base_offset}, {i.end_offset})" for i in items)
    else:
        span = f"[{min(i.base_offset for i in items)}, {max(i.end_offset for i in items)})"
        yield f"{state} {sum(map(count_of, items))} segments of {span}"


def difference(before: Entries, after: Entries) -> Iterator[Row]:
    """A row for each segment, gap and offset in which two versions differ. Pages that both name are not read."""
    was, now = before.manifest, after.manifest
    for name in ("log_start_offset", "end_offset", "writer_epoch"):
        if getattr(was, name) != getattr(now, name):
            yield _row(name, before=getattr(was, name), after=getattr(now, name))
    left, right = _differing(before, after)
    for segment_id in sorted({*left, *right}, key=lambda s: ((left.get(s) or right[s])[0].base_offset, s)):
        entry, state = left.get(segment_id) or (right[segment_id][0], None)
        is_now = right[segment_id][1] if segment_id in right else SegmentState.delete_finished
        yield _row("segment", entry.base_offset, entry.end_offset, segment_id, state, is_now)
    gaps = [{(g.start, g.end): g.reason for g in m.gaps} for m in (was, now)]
    for start, end in sorted({*gaps[0], *gaps[1]}):
        reasons = [side.get((start, end)) for side in gaps]
        if reasons[0] != reasons[1]:
            yield _row("gap", start, end, None, *reasons)


def _row(
    what: str,
    start: int | None = None,
    end: int | None = None,
    segment_id: str | None = None,
    before: Any = None,
    after: Any = None,
) -> Row:
    return {"what": what, "start": start, "end": end, "segment_id": segment_id, "before": before, "after": after}


EntryInState = tuple[SegmentEntry, SegmentState]
EntriesById = dict[str, EntryInState]


def _differing(before: Entries, after: Entries) -> tuple[EntriesById, EntriesById]:
    """The segments that only one side has, or that differ in state; pages that both sides name stay unread."""
    sides = [(entries, _states(entries.manifest)) for entries in (before, after)]
    while True:
        both = sides[0][1].keys() & sides[1][1].keys()
        for _, items in sides:
            for key in both:
                del items[key]
        level = max((i.level for _, items in sides for i in items.values() if isinstance(i, PageRef)), default=None)
        if level is None:
            break
        for entries, items in sides:
            for (_, state), item in [*items.items()]:
                if isinstance(item, PageRef) and item.level == level:
                    del items[item_id(item), state]
                    items |= {(item_id(i), state): i for i in entries.pages.read(item)}
    left, right = (
        {item_id(i): (i, state) for (_, state), i in items.items() if isinstance(i, SegmentEntry)} for _, items in sides
    )
    return left, right


def _states(manifest: Manifest) -> dict[tuple[str, SegmentState], Item]:
    named = {(item_id(i), SegmentState.copy_finished): i for i in manifest.items}
    return {**named, **{(d.id, SegmentState.delete_started): d.item for d in manifest.deleting}}
