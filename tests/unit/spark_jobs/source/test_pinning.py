"""Retention between planning and reading: with a pin no row is lost, without one the read says what happened."""

import os
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import Door
from made_archive import made

from local_log.errors import Corrupt, Invalid
from remote.archive import manifests
from remote.clock import RandomIds, SystemClock
from remote.manifest.pins import Pins, pins_of
from remote.manifest.store import ManifestWriter
from remote.manifest.superseding import superseding
from remote.store.api import Body, ObjectStore
from remote.store.folder.store import FolderStore
from remote.store.store_time import StoreRun
from spark_jobs.source.batch_reader import BatchReader
from spark_jobs.source.deleted_during_read import DeletedDuringRead
from spark_jobs.source.options import ReadOptions, parse
from spark_jobs.source.pinning import pinned_splits, plan_pinned
from spark_jobs.source.pushdown import Pushdown
from spark_jobs.source.rows import read_split
from tiering.retention import expire as retention
from tiering.retention.plan import Policy
from tiering.sweep import collect as sweep

DAY_MS = 24 * 3_600_000
SEGMENTS = [[[s * 100 + b * 10 + r for r in range(4)] for b in range(5)] for s in range(6)]
"""Six segments of 20 records each."""


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    archive = FolderStore(str(tmp_path / "archive"))
    made(archive, SEGMENTS)
    return archive


def options(store: ObjectStore, **more: str) -> ReadOptions:
    return parse({"archive": store.url, "subscribe": "made", **more})


def expire(store: ObjectStore, log_start_offset: int) -> None:
    """Retention as it runs on a schedule, without its delay: the manifest moves, then objects and leftovers go."""
    clock, ids = SystemClock(), RandomIds()
    for _ in range(2):
        (manifest,) = manifests(store, "made")
        due = retention.plan(manifest, store, Policy(delete_delay_ms=0), clock.now_ms(), log_start_offset=log_start_offset)
        assert retention.expire(due, StoreRun(store, clock, ids), "retention").error is None
        (manifest,) = manifests(store, "made")
        list(sweep.sweep(sweep.plan(store, manifest.path, clock.now_ms(), DAY_MS), store, clock, ids, clock.now_ms()))


def supersede(store: ObjectStore) -> None:
    """An offload after compaction has emptied the first segment."""
    (manifest,) = manifests(store, "made")
    first = manifest.entries[0]
    within = first.base_offset, first.end_offset
    step = superseding(manifest, [first.segment_id], within, lambda ref: (), RandomIds().new_id)
    assert step is not None
    writer = ManifestWriter(store, manifest.path, SystemClock(), RandomIds(), "offload", manifest.writer_epoch)
    writer.commit(manifest, lambda m: step.applied(m, (), m.leader_epochs, SystemClock().now_ms()))


def keys(store: ObjectStore) -> list[str]:
    return [meta.key for meta in store.list("") if meta.key.endswith(".log")]


def logs(store: ObjectStore) -> int:
    return len(keys(store))


def pins(store: ObjectStore) -> Pins:
    return pins_of(store, manifests(store, "made")[0].path, SystemClock().now_ms())


def offsets(store: ObjectStore, splits: Any, **more: Any) -> list[int]:
    return [
        offset
        for split in splits
        for batch in read_split(store, split, ("offset",), read_committed=False, first_bytes=4096, **more)
        for offset in batch.column("offset").to_pylist()
    ]


def test_retention_between_planning_and_reading_loses_no_row_of_a_pinned_read(store: FolderStore) -> None:
    reader = BatchReader(options(store), ("offset",))
    planned = reader.partitions()
    expire(store, 60)
    assert manifests(store, "made")[0].log_start_offset == 60
    assert [o for p in planned for batch in reader.read(p) for o in batch.column("offset").to_pylist()] == list(range(120))
    assert offsets(store, plan_pinned(store, options(store), SystemClock(), RandomIds()).splits) == list(range(60, 120))


def test_without_a_pin_the_read_says_what_retention_has_deleted_and_gives_no_short_result(store: FolderStore) -> None:
    planned = plan_pinned(store, options(store, pinHours="0"), SystemClock(), RandomIds())
    assert pins(store) == Pins()
    expire(store, 60)
    assert logs(store) == 3
    for split in planned.splits[:3]:
        with pytest.raises(
            DeletedDuringRead, match=r"made-0: retention has deleted offsets \[\d+, \d+\).*starts at offset 60 now"
        ) as e:
            offsets(store, [split])
        assert (e.value.partition, e.value.log_start_offset) == ("made-0", 60)
    assert offsets(store, planned.splits[3:]) == list(range(60, 120))
    assert offsets(store, planned.splits, fail_on_data_loss=False) == list(range(60, 120))


def test_without_a_pin_the_read_says_that_compacted_segments_have_replaced_its_own(store: FolderStore) -> None:
    planned = plan_pinned(store, options(store, pinHours="0"), SystemClock(), RandomIds())
    supersede(store)
    assert offsets(store, planned.splits) == list(range(120)), "for as long as the delay lasts"
    expire(store, 0)
    with pytest.raises(DeletedDuringRead, match=r"offsets \[0, 20\).*compacted segments have replaced those that had them"):
        offsets(store, planned.splits[:1])
    assert offsets(store, planned.splits[1:]) == list(range(20, 120))
    assert offsets(store, plan_pinned(store, options(store), SystemClock(), RandomIds()).splits) == list(range(20, 120))


def test_a_pin_keeps_what_compacted_segments_replace_during_the_read(store: FolderStore) -> None:
    planned = plan_pinned(store, options(store), SystemClock(), RandomIds())
    supersede(store)
    expire(store, 0)
    assert offsets(store, planned.splits) == list(range(120))


def test_an_object_that_is_gone_without_retention_is_damage(store: FolderStore) -> None:
    planned = plan_pinned(store, options(store), SystemClock(), RandomIds())
    for key in keys(store):
        store.delete(key)
    with pytest.raises(Corrupt, match="restore the object from a copy"):
        offsets(store, planned.splits)


def test_a_pin_covers_what_is_read_for_a_day_and_ends_with_the_block(store: FolderStore) -> None:
    asked = options(store, startingOffsets='{"made": {"0": 30}}')
    with pinned_splits(store, asked, SystemClock(), RandomIds(), Pushdown(offsets=((0, 70),))):
        (pin,) = pins(store).live
        assert (pin.start, pin.end, pin.version) == (30, 70, manifests(store, "made")[0].version)
        assert pin.expires_at_ms - pin.created_at_ms == DAY_MS
    assert pins(store) == Pins()


def test_a_read_of_nothing_leaves_no_pin(store: FolderStore) -> None:
    plan_pinned(store, options(store), SystemClock(), RandomIds(), Pushdown(offsets=()))
    assert pins(store) == Pins()


class OnlyReads(Door):
    """A store whose rights end at reading."""

    def put_if_absent(self, key: str, body: Body) -> None:
        raise Invalid(f"{key}: AccessDenied")


class RetainsFirst(Door):
    """Retention that gives up, and deletes, just before each of the first pins is there."""

    starts = [20, 40]  # noqa: RUF012

    def put_if_absent(self, key: str, body: Body) -> None:
        if "/pins/" in key and self.starts:
            expire(self.inner, self.starts.pop(0))
        self.inner.put_if_absent(key, body)


class SupersedesFirst(Door):
    """An offload that gives up the first segment just before the first pin is there."""

    is_done = False

    def put_if_absent(self, key: str, body: Body) -> None:
        if "/pins/" in key and not self.is_done:
            self.is_done = True
            supersede(self.inner)
        self.inner.put_if_absent(key, body)


def test_a_read_is_planned_again_if_its_segments_are_replaced_before_they_are_pinned(store: FolderStore) -> None:
    planned = plan_pinned(SupersedesFirst(store), options(store), SystemClock(), RandomIds())
    assert offsets(store, planned.splits) == list(range(20, 120))
    assert len(pins(store).live) == 1


def test_an_archive_that_may_only_be_read_is_read_without_a_pin(store: FolderStore) -> None:
    planned = plan_pinned(OnlyReads(store), options(store), SystemClock(), RandomIds())
    assert (planned.pins, offsets(store, planned.splits)) == ((), list(range(120)))


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_so_is_a_folder_that_may_only_be_read(store: FolderStore, tmp_path: Path) -> None:
    for folder in ((tmp_path / "archive"), *(tmp_path / "archive").rglob("*/")):
        folder.chmod(0o555)
    assert offsets(store, plan_pinned(store, options(store), SystemClock(), RandomIds()).splits) == list(range(120))


def test_a_pin_that_comes_after_retention_has_looked_makes_the_plan_anew(store: FolderStore) -> None:
    planned = plan_pinned(RetainsFirst(store), options(store), SystemClock(), RandomIds())
    assert offsets(store, planned.splits) == list(range(40, 120))
    assert len(pins(store).live) == 1
