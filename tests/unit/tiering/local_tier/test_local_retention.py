"""What local retention deletes stays deleted, also for who starts after a crash."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from archive_fakes import FixedClock, MemoryStore
from local_tiers import ORDERS, SMALL, Host, produce
from managed import T0
from owned_logs import OwnedLog
from small_logs import NOW

from local_log.formats.filenames import TIME_INDEX
from local_log.formats.indexes.time import ENTRY
from tiering.agent.schedule import Job, Kind
from tiering.agent.tasks.local_retention import LocalRetentionTask
from tiering.local_tier.local_retention import retain
from tiering.local_tier.own_log_dir import OwnLogDir

TIERED = {**SMALL, "remote.storage.enable": "true", "retention.ms": "-1", "local.retention.bytes": "0"}


def test_a_log_starts_after_a_crash_where_records_were_deleted_that_nobody_archived() -> None:
    host = Host(settings=TIERED, dirs=("/a",))
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 40)
    log = tier.log(ORDERS)
    log.flush()
    log.maybe_increment_log_start_offset(30)
    task = LocalRetentionTask(MemoryStore(), FixedClock(T0), tier, 1)
    mark = SimpleNamespace(partition=ORDERS, log_dir=OwnLogDir(host.disk, "/a", tier), folder=f"/a/{ORDERS}")
    state = SimpleNamespace(marks={"it": mark}, views={})
    done = task.turn(Job(Kind.local, "it"), state)()  # type: ignore[arg-type]
    assert done.deleted
    host.loses_power()
    found = host.started().log(ORDERS).offsets
    assert (found.log_start, found.end.offset) == (30, 40)


def test_a_damaged_time_index_does_not_keep_segments_from_being_deleted(tmp_path: Path) -> None:
    at = OwnedLog(str(tmp_path))
    at.fill(20, step_ms=1000)
    at.offload()
    first = at.reader.segments[0].path(TIME_INDEX)
    entry = at.disk.read(first, 0, ENTRY.itemsize)
    at.disk.write(first, ENTRY.itemsize, entry)  # a block that a loss of power has left as it was
    at.log.folder.config = replace(at.config, local_retention_bytes=0)
    segments = len(at.reader.segments)
    assert retain(at.log, at.reader, at.store, NOW) == segments - 1
