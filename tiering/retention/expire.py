"""Retention of one archived partition, in two steps that can both be repeated: plan, then a flat loop of acts.

    1  the manifest moves its log start offset to where the policy says; entries below it wait in `deleting`, with the time
    2  after the delay the objects go of what no live pin covers, then the manifest forgets them

A run takes step 2 for what earlier runs expired, then step 1, so that what it does is what it planned. Pins are listed after
the commit that expired an entry and before its objects go: a reader pins first and opens the manifest then, so it either is
seen or never sees the entry. Pages of entries that are gone are left to the sweep, since older versions name them.

The delay is for readers without a pin who have opened a version in which the entry had not expired yet. So it counts from when
such a version stopped being the newest, as the store has it. The time in `deleting` alone would not do: a run takes it before its
commit, and in between it may delete for hours, or sleep.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from local_log.errors import Conflict, Corrupt, LogError, NotFound, Unavailable, Unknown
from remote.keys import PartitionPath
from remote.manifest.chain import stored_versions
from remote.manifest.entries import Entries
from remote.manifest.model import Deleting, Manifest, never_archived
from remote.manifest.paging import has_below
from remote.manifest.pins import Pins, covered_by_pin, pins_of
from remote.manifest.store import ManifestWriter, load_newest, load_version
from remote.manifest.transitions import deleted, retained
from remote.parallel import in_order
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun, refuse_later
from tiering.retention.plan import LocalBytes, Policy, Reason, RetentionPlan, is_given_up, local_only_bytes, plan_retention

DELETES_MAX = 16
"""How many objects are deleted at a time: S3 answers a deletion in some 20 ms, and takes thousands a second."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The result of a plan: how many items' objects were deleted, the log start offset, and the error that stopped the rest."""

    deleted: int
    log_start_offset: int
    error: LogError | None = None


def newest_manifest(store: ObjectStore, path: PartitionPath) -> Manifest:
    """The newest manifest. Raises NotFound if there is none: nothing may be deleted without it."""
    stored = load_newest(store, path)
    if stored is None:
        raise NotFound(f"{path}: the archive has no manifest of it; nothing expires while its end is unknown")
    return stored.manifest


def plan(
    manifest: Manifest,
    store: ObjectStore,
    policy: Policy,
    now_ms: int,
    *,
    local: Sequence[LocalBytes] = (),
    log_start_offset: int = 0,
) -> RetentionPlan:
    """The plan for a partition. Only reads: the pages that it comes to, and pins where something has waited long enough.

    `local` are the segments of the local log, which count where retention.bytes is set. Raises Corrupt, Invalid, Unavailable.
    """
    entries = Entries.of(store, manifest)
    has_waited = any(now_ms - d.since_ms >= policy.delete_delay_ms for d in manifest.deleting)
    pins = pins_of(store, manifest.path, now_ms) if has_waited else Pins()
    if manifest.is_deleted:
        return plan_retention(entries, Policy(delete_delay_ms=policy.delete_delay_ms), now_ms, partial(covered_by_pin, pins))
    over_both = local_only_bytes(manifest, local)
    return plan_retention(
        entries, policy, now_ms, partial(covered_by_pin, pins), local_bytes=over_both, log_start_offset=log_start_offset
    )


def expire(due: RetentionPlan, run: StoreRun, writer: str, *, threads: int = 1) -> Expired:
    """Does what the plan says, `threads` deletions at a time. Nothing is done where the machine's clock is far from the store's.

    Every error is in the result: what was done before it stays done, and the same command continues from there.
    """
    manifest = due.manifest
    count, start = 0, manifest.log_start_offset
    try:
        clock = run.agreed()
        now_ms = clock.now_ms()
        refuse_later(due.planned_at_ms, now_ms, f"{manifest.path}: retention")
        own = ManifestWriter(run.store, manifest.path, clock, run.ids, writer, manifest.writer_epoch)
        count, error = _delete(due, own, now_ms, threads)
        if error is None or not isinstance(error, Unavailable | Unknown):
            start = _advanced(due, own, now_ms).log_start_offset if due.is_to_commit else start
    except LogError as e:
        return Expired(count, start, e)
    return Expired(count, start, error)


def advance_log_start_offset(
    writer: ManifestWriter, log_start_offset: int, now_ms: int, *, planned_on: Manifest | None = None
) -> Manifest:
    """Step 1: commits the new start, until all below it waits to be deleted or no more can. Raises what a commit raises.

    Raises Conflict if the archive gave up a history after the version `planned_on`: below the start that was planned there may
    be other records now, or none yet.
    """
    path = writer.path
    first = never_archived(path.topic, path.topic_id, path.partition, log_start_offset)
    deleting_max = writer.limits.deleting_max

    def change(before: Manifest) -> Manifest:
        if planned_on is not None and before.diverged != planned_on.diverged:
            raise Conflict(f"{path}: its archive was truncated after this was planned; run the same command again")
        return retained(before, log_start_offset, now_ms, deleting_max=deleting_max)

    while True:
        after = writer.commit(first, change)
        if not has_below(after) or len(after.deleting) >= deleting_max:
            return after


def _advanced(due: RetentionPlan, writer: ManifestWriter, now_ms: int) -> Manifest:
    """Step 1 of a plan. Only a start that was asked for holds whatever records lie below it."""
    is_asked_for = all(cut.reason is Reason.log_start_offset for cut in due.cuts)
    planned_on = None if is_asked_for else due.manifest
    return advance_log_start_offset(writer, due.log_start_offset, now_ms, planned_on=planned_on)


def _delete(due: RetentionPlan, writer: ManifestWriter, now_ms: int, threads: int) -> tuple[int, LogError | None]:
    """Step 2: the objects of what has waited, then the manifest that forgets them; how many items, and the first error.

    An item whose page cannot be read stays, and so do its objects; it does not keep the others.
    """
    if not due.due:
        return 0, None
    manifest, store = due.manifest, writer.store
    entries = Entries.of(store, manifest)
    pins = pins_of(store, manifest.path, now_ms)
    late = [d for d in due.due if now_ms - d.since_ms >= due.policy.delete_delay_ms and not covered_by_pin(pins, d.item)]
    then = _newest_then(store, manifest, now_ms - due.policy.delete_delay_ms)
    late = [d for d in late if is_given_up(then, d)]
    deletion = _Deletion(store, entries)
    with in_order(deletion.delete, deletion.objects(late), threads) as done:
        for _ in done:
            pass
    gone = [id_ for id_ in deletion.asked if id_ not in deletion.failed]
    if gone:
        writer.commit(manifest, lambda m: deleted(m, gone))
    item_id, error = next(iter(deletion.failed.items()), ("", None))
    if isinstance(error, Corrupt) and item_id not in {d.id for d in newest_manifest(store, manifest.path).deleting}:
        error = Conflict(
            f"{manifest.path}: other processes have changed it since this was planned; run the same command again ({error})"
        )
    return len(gone), error


def _newest_then(store: ObjectStore, manifest: Manifest, time_ms: int) -> Manifest:
    """The version that was the newest at that time of the store; the oldest one where the sweep has taken that.

    `manifest` is a version that need not be asked for. Raises NotFound where it is swept just now, Corrupt, Newer, Unavailable.
    """
    listed = stored_versions(store, manifest.path)
    old = (v.version for v in listed if v.meta.modified_ms is not None and v.meta.modified_ms <= time_ms)
    version = next(old, listed[-1].version if listed else manifest.version)
    return manifest if version == manifest.version else load_version(store, manifest.path, version).manifest


@dataclass(frozen=True, slots=True)
class _Deletion:
    """Which items' objects have all been asked for, and what went wrong with which item."""

    store: ObjectStore
    entries: Entries
    asked: list[str] = field(default_factory=list)
    failed: dict[str, LogError] = field(default_factory=dict)

    def objects(self, items: Iterable[Deleting]) -> Iterator[tuple[str, str]]:
        """The items' ids, each with the keys of its objects; no more where the store fails: the others would wait for it, too."""
        path = self.entries.manifest.path
        for item in items:
            try:
                for entry in self.entries.deleting(item):
                    for name in (entry.aux_name, entry.log_name):
                        if self._is_store_gone:
                            return
                        yield item.id, path.segment(name)
            except LogError as e:
                self.failed[item.id] = e
            else:
                self.asked.append(item.id)

    def delete(self, of: tuple[str, str]) -> None:
        """One object of an item."""
        item_id, key = of
        try:
            self.store.delete(key)
        except LogError as e:
            self.failed.setdefault(item_id, e)

    @property
    def _is_store_gone(self) -> bool:
        return any(isinstance(e, Unavailable | Unknown) for e in list(self.failed.values()))
