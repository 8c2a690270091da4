"""Deliberate faults in the code. A simulation has to find each: one that it does not find is a hole in what it judges."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from local_log.errors import AlreadyExists, Unknown
from remote import archive
from remote.direct_write import commit as direct_write
from remote.direct_write import topic
from remote.manifest import pins, writes
from remote.manifest.store import ManifestWriter
from remote.segment import upload as uploads
from remote.store.store_time import At, StoreRun
from simulated.stores import StoreOf
from tiering.offload import copy
from tiering.retention import expire
from tiering.sweep import collect

MUTANTS: dict[str, Callable[[], None]] = {}


def mutant(change: Callable[[], None]) -> Callable[[], None]:
    """Registers a fault under the name of the function that makes it."""
    MUTANTS[change.__name__.replace("_", "-")] = change
    return change


@mutant
def sweep_without_a_claim() -> None:
    collect.claim = lambda *args: None


@mutant
def sweep_without_a_second_look() -> None:
    collect.still_unnamed = lambda due, *args: [*due.unclaimed]


@mutant
def expire_without_pins() -> None:
    expire.pins_of = lambda *args: pins.Pins()


@mutant
def expire_without_a_delay() -> None:
    plan = expire.plan
    expire.plan = lambda manifest, store, policy, now_ms, **options: plan(
        manifest, store, replace(policy, delete_delay_ms=0), now_ms, **options
    )


@mutant
def expire_what_is_young() -> None:
    plan = expire.plan
    expire.plan = lambda manifest, store, policy, now_ms, **options: plan(
        manifest, store, replace(policy, retention_ms=(policy.retention_ms or 0) // 2), now_ms, **options
    )


@mutant
def take_an_unknown_put_for_failed() -> None:
    def put(self: ManifestWriter, manifest: Any, body: bytes) -> bool:
        try:
            self.store.put_if_absent(self.path.manifest(manifest.version), body)
        except (AlreadyExists, Unknown):
            return False
        return True

    ManifestWriter._put = put  # type: ignore[method-assign]


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
    copy.stable_offset = lambda log: log.high_watermark


@mutant
def archive_by_the_last_stable_offset_alone() -> None:
    copy.stable_offset = lambda log: log.last_stable_offset


@mutant
def archive_to_the_log_end() -> None:
    copy.stable_offset = lambda log: log.log_end_offset


@mutant
def forget_epochs_below_the_log_start() -> None:
    copy.epochs_with_batches = lambda entries, batches: entries


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
def see_writes_that_are_pending() -> None:
    def resolved(store: Any, manifest: Any) -> Any:
        return writes.resolved(manifest, manifest.committed_at_ms) if manifest.pending else manifest

    archive.as_decided = resolved


@mutant
def take_up_a_write_without_its_outcome() -> None:
    topic.as_decided = lambda store, manifest: manifest


@mutant
def commit_a_write_again() -> None:
    direct_write.committed_before = lambda store, write: None


@mutant
def give_up_by_the_time_before_a_pause() -> None:
    def at_once(run: StoreRun) -> At:
        if run._agreed is None:
            run._agreed = At(run.clock.now_ms(), run.clock)
        return run._agreed

    StoreRun.agreed = at_once  # type: ignore[method-assign]
