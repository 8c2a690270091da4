"""What becomes of segments that compacted ones have superseded, and of the archive without them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from keyed_logs import KeyedLog
from logs_to_archive import path_of
from made_manifests import assert_sound_chain
from restored_logs import run_soundly

from local_log.errors import NotFound
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk
from remote import archive
from remote.manifest import pins, superseding
from remote.manifest.model import Manifest, count_of
from remote.read.context import decoder_with
from remote.read.log import ArchivedLog
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Finding
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from remote.store.store_time import StoreRun
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.retention import expire as retention
from tiering.retention.plan import Policy
from tiering.sweep import collect as sweep

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
Records = list[tuple[int, bytes | None]]


class World:
    """An archive in which compacted segments have taken the place of those that `before` names."""

    def __init__(self, log: KeyedLog) -> None:
        self.log, self.clock = log, FixedClock()
        self.store = MemoryStore(self.clock)
        archive.create_archive(self.store, self.clock, CountingIds("ac"))
        self.before = self.offload("a")
        self.was = records(ArchivedLog(self.store, self.before), self.before.end_offset)
        log.clean()
        self.clock.now += HOUR_MS
        self.after = self.offload("b")
        assert self.after.deleting

    def offload(self, prefix: str) -> Manifest:
        reader = self.log.reader()
        run = OffloadRun(self.store, self.clock, CountingIds(prefix), "source", lambda _: None)
        assert [d.error for d in offload(plan(reader, self.store, replaces=True), run) if d.error] == []
        return assert_sound_chain(self.store, path_of(reader))

    def expire(self) -> None:
        due = retention.plan(self.newest, self.store, Policy(delete_delay_ms=DAY_MS), self.clock.now_ms())
        assert retention.expire(due, StoreRun(self.store, self.clock, CountingIds("e")), "retain").error is None

    @property
    def newest(self) -> Manifest:
        (manifest,) = archive.newest_manifests(self.store, "keyed")
        return manifest

    def superseded(self) -> set[str]:
        """The keys of the superseded objects that are there."""
        names = {e.log_name for e in self.before.entries} | {e.aux_name for e in self.before.entries}
        names -= {e.log_name for e in self.after.entries} | {e.aux_name for e in self.after.entries}
        return {self.before.path.segment(name) for name in names} & set(self.store.objects)


@pytest.fixture(params=[16, 0], ids=["as entries", "in pages"])
def world(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(superseding, "ONE_BY_ONE_MAX", request.param)
    log = KeyedLog(tmp_path / "logs")
    log.fill(6)
    yield World(log)
    log.log.close()


def records(log: LogReader | ArchivedLog, end: int) -> Records:
    rows = [row for chunk in log.chunks(0, end) for _, batch in chunk.records() for row in batch.to_pylist()]
    return [(row["offset"], row["value"]) for row in rows if row["offset"] < end]


def test_they_are_deleted_after_the_delay_and_nothing_else_is(world: World) -> None:
    there = world.superseded()
    assert len(there) == 2 * sum(count_of(d.item) for d in world.after.deleting)
    world.expire()
    assert world.superseded() == there
    world.clock.now += DAY_MS + HOUR_MS
    others = set(world.store.objects) - there
    world.expire()
    assert world.superseded() == set()
    assert others <= set(world.store.objects)
    assert world.newest.deleting == ()
    now = records(world.log.reader(), world.after.end_offset)
    assert records(ArchivedLog(world.store, world.newest), world.newest.end_offset) == now
    with pytest.raises(NotFound):
        world.store.get(world.before.path.segment(world.before.entries[0].log_name))


def test_a_reader_s_pin_keeps_them(world: World) -> None:
    path, end = world.before.path, world.before.end_offset
    pins.create(world.store, path, "reader", world.before.version, 0, end, 3 * DAY_MS, world.clock, CountingIds("ca"))
    world.clock.now += 2 * DAY_MS
    there = world.superseded()
    world.expire()
    assert world.superseded() == there
    assert records(ArchivedLog(world.store, world.before), end) == world.was


def test_a_sweep_leaves_them_to_retention(world: World) -> None:
    there = world.superseded()
    world.clock.now += 30 * DAY_MS
    garbage = sweep.plan(world.store, world.before.path, world.clock.now_ms(), DAY_MS)
    list(sweep.sweep(garbage, world.store, world.clock, CountingIds("cb"), world.clock.now_ms()))
    assert world.superseded() == there
    assert records(ArchivedLog(world.store, world.newest), world.newest.end_offset) == records(
        world.log.reader(), world.after.end_offset
    )


def scrubbed(world: World) -> list[Finding]:
    settings = ScrubSettings(deep=True)
    return list(scrub(RequestBudget(world.store, None), decoder_with(None), settings, now_ms=world.clock.now_ms()))


def test_a_scrub_finds_nothing_wrong(world: World) -> None:
    assert scrubbed(world) == []


def test_a_scrub_finds_nothing_wrong_with_segments_that_were_emptied(world: World) -> None:
    base, end = world.after.entries[0].base_offset, world.after.entries[0].end_offset
    read = world.log.reader().chunks(base, end)
    keys = [r["key"] for chunk in read for _, rows in chunk.records() for r in rows.to_pylist() if r["offset"] < end]
    world.log.put(*((key, b"once more") for key in keys))
    for suffix in (".log", ".index", ".timeindex"):
        world.log.segment(base, suffix).write_bytes(b"")
    emptied = world.offload("c")
    assert emptied.gaps
    assert emptied.holes == ()
    assert scrubbed(world) == []


def test_the_log_is_restored_as_it_was_compacted(world: World, tmp_path: Path) -> None:
    run_soundly(world.store, str(tmp_path / "restored"))
    (restored,) = LogDir(OsDisk(), str(tmp_path / "restored")).logs()
    end = world.after.end_offset
    assert records(restored, end) == records(world.log.reader(), end)
