"""Faults in commits, offloads, retention and key rotation."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from local_log.errors import AlreadyExists, Corrupt, Unknown
from local_log.log_reader import LogReader
from remote.keys import PartitionPath
from remote.manifest import pins
from remote.manifest import store as manifests
from remote.manifest.model import Manifest, never_archived
from remote.manifest.pins import Pin
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter
from remote.read import log as archived_log
from remote.segment import upload as uploads
from remote.store.store_time import At, StoreRun
from remote.transforms.rotation import RotationStep
from simulated.mutants.registry import mutant
from simulated.stores import StoreOf
from tiering.offload import copy, due, source
from tiering.offload import plan as offload_plan
from tiering.offload.below_log_start import Committed
from tiering.offload.changed import Changed
from tiering.offload.local_segment import LocalSegment
from tiering.offload.plan import Action, Decision
from tiering.retention import accounting, expire, plan


@mutant
def begin_a_first_manifest_at_the_last_segment() -> None:
    def begun(path: PartitionPath, log: LogReader) -> Manifest:
        return never_archived(path.topic, path.topic_id, path.partition, max(log.log_start_offset, log.segments[-1].base_offset))

    copy.not_archived_yet = due.not_archived_yet = begun


@mutant
def copy_the_first_segment_alone() -> None:
    decide = offload_plan._decide

    def first(listed: LocalSegment, *args: Any) -> Decision:
        found = decide(listed, *args)
        return replace(found, action=Action.keep) if found.action is Action.copy and listed.base_offset else found

    offload_plan._decide = first


@mutant
def expire_without_pins() -> None:
    expire.pins_of = lambda *args: pins.Pins()


@mutant
def expire_without_a_delay() -> None:
    planned = expire.plan
    expire.plan = lambda manifest, store, policy, now_ms, **options: planned(
        manifest, store, replace(policy, delete_delay_ms=0), now_ms, **options
    )


@mutant
def expire_what_is_young() -> None:
    planned = expire.plan
    expire.plan = lambda manifest, store, policy, now_ms, **options: planned(
        manifest, store, replace(policy, retention_ms=(policy.retention_ms or 0) // 2), now_ms, **options
    )


@mutant
def take_an_unknown_put_for_done() -> None:
    def put(self: ManifestWriter, manifest: Any, body: bytes) -> bool:
        try:
            self.store.put_if_absent(self.path.manifest(manifest.version), body)
        except AlreadyExists:
            return False
        except Unknown:
            return True
        return True

    ManifestWriter._put = put  # type: ignore[method-assign]


@mutant
def commit_in_spite_of_a_fence() -> None:
    commit_once = ManifestWriter._commit_once

    def unfenced(self: ManifestWriter, before: Any, change: Any) -> Any:
        epoch = max(self.writer_epoch, before.manifest.writer_epoch)
        return commit_once(replace(self, writer_epoch=epoch), before, change)

    ManifestWriter._commit_once = unfenced  # type: ignore[method-assign]


@mutant
def archive_to_the_high_watermark() -> None:
    due.stable_offset = lambda log: log.high_watermark


@mutant
def archive_by_the_last_stable_offset_alone() -> None:
    aborted_later = source.aborted_later

    def unasked(log: Any, start: int, end: int, followed: Any) -> Any:
        try:
            return aborted_later(log, start, end, followed)
        except (Changed, Corrupt):
            return ()

    due.stable_offset = lambda log: log.last_stable_offset
    source.aborted_later = unasked


@mutant
def archive_what_an_earlier_leader_has_below_the_log_start() -> None:
    due.committed_from = lambda log: Committed()


@mutant
def archive_to_the_log_end() -> None:
    due.stable_offset = lambda log: log.log_end_offset


@mutant
def give_up_what_lies_below_the_first_known_epoch() -> None:
    def is_older(entry: SegmentEntry, manifest: Manifest) -> bool:
        known, own = manifest.leader_epochs, entry.leader_epochs
        return bool(known and own) and own[-1].epoch < known[0].epoch

    copy.epochs_with_batches = lambda entries, batches: entries
    accounting.is_unreferenced = plan.is_unreferenced = is_older


@mutant
def take_an_unknown_upload_for_done() -> None:
    send = StoreOf.upload

    def upload(self: StoreOf, key: str, parts: Any, *, size: int, crc32c: int) -> None:
        with suppress(Unknown):
            send(self, key, parts, size=size, crc32c=crc32c)

    StoreOf.upload = upload  # type: ignore[method-assign]
    uploads.verify = lambda *args: None


@mutant
def delete_below_an_older_version() -> None:
    expire.is_given_up = lambda then, deleting: True


@mutant
def expire_by_the_clock_of_the_machine() -> None:
    def at_once(run: StoreRun) -> At:
        if run._agreed is None:
            run._agreed = At(run.clock.now_ms(), run.clock)
        return run._agreed

    StoreRun.agreed = at_once  # type: ignore[method-assign]


@mutant
def take_a_taken_key_for_ours() -> None:
    put_if_absent = ManifestWriter._put

    def put(self: ManifestWriter, manifest: Any, body: bytes) -> bool:
        put_if_absent(self, manifest, body)
        return True

    ManifestWriter._put = put  # type: ignore[method-assign]


@mutant
def commit_under_a_key_that_is_free_again() -> None:
    ManifestWriter._newest_after = lambda self, ours: ours.manifest.version  # type: ignore[method-assign]


@mutant
def name_pages_that_were_not_written() -> None:
    manifests.put_own = lambda *args: None


@mutant
def delete_objects_before_the_manifest() -> None:
    advance = expire.advance_log_start_offset

    def deletes_first(writer: ManifestWriter, log_start_offset: int, now_ms: int, **more: Any) -> Any:
        manifest = expire.newest_manifest(writer.store, writer.path)
        for entry in manifest.entries:
            if entry.end_offset <= log_start_offset:
                writer.store.delete(writer.path.segment(entry.log_name))
        return advance(writer, log_start_offset, now_ms, **more)

    expire.advance_log_start_offset = deletes_first


@mutant
def judge_pins_by_the_clocks_of_their_readers() -> None:
    Pin.obeyed_until_ms = lambda self, made_ms: self.expires_at_ms  # type: ignore[method-assign]


@mutant
def rotate_keys_onto_a_later_version() -> None:
    applied = RotationStep.applied

    def to_any(self: RotationStep, manifest: Any) -> Any:
        self.planned_on = manifest.put_id
        return applied(self, manifest)

    RotationStep.applied = to_any  # type: ignore[method-assign]


class _ByOffset:
    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset

    def new_id(self) -> str:
        return f"{self.base_offset:032x}"


@mutant
def name_segments_by_their_offsets() -> None:
    send = copy.copy_segment

    def named(store: Any, path: Any, of: Any, clock: Any, ids: Any, transforms: Any) -> Any:
        return send(store, path, of, clock, _ByOffset(of.data.base_offset), transforms)

    copy.copy_segment = named


@mutant
def forget_transactions_that_abort_in_a_later_segment() -> None:
    uploads.write_txn_index = lambda aborted: b""


@mutant
def read_the_offsets_of_overlaps_twice() -> None:
    def every(manifest: Any, entries: Any, start: int, end: int) -> Any:
        return (archived_log.Span(e, max(start, e.base_offset), min(end, e.end_offset)) for e in entries)

    archived_log.spans_and_gaps = every
