"""A round of cleaning that loses power at any moment: the next start finds the last value of each key."""

from dataclasses import replace
from itertools import cycle

from hand_made import batch, record
from logs_at_work import FOLLOWED_EPOCH
from managed import ORDERS
from simulated_disk import SimulatedDisk
from small_logs import NOW

from local_log.engine.cleaner import OffsetMap, clean
from local_log.engine.config import LogConfig, read_config
from local_log.engine.local_log import Fetched
from local_log.engine.manager.background import AtOnce
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.formats.batches import decode, scan

FOLDER = "/logs/t-0"
BATCHES = 20


def opened(disk: SimulatedDisk, *, recovery_point: int = 0, clean: bool = False) -> UnifiedLog:
    sizes = {"internal.segment.bytes": "500", "segment.index.bytes": "2400", "index.interval.bytes": "1"}
    config = read_config(sizes | {"delete.retention.ms": "0"})
    return open_log(disk, FOLDER, config, lambda: NOW, lambda: 0.0, recovery_point=recovery_point, clean=clean)


def values(log: UnifiedLog) -> dict[bytes, tuple[int, bytes]]:
    """The last offset and value of each key."""
    found: dict[bytes, tuple[int, bytes]] = {}
    offset = 0
    while offset < log.log_end_offset:
        read: Fetched = log.local.read(offset, 1 << 20, log.local.end, one_batch_at_least=True)
        batches, _ = scan(read.records)
        if not len(batches):
            break
        for _, records in decode(read.records, batches):
            found.update({row["key"]: (row["offset"], row["value"]) for row in records.to_pylist()})
        offset = batches.next_offset
    return found


def test_after_a_crash_at_any_call_of_a_round_each_key_has_its_last_value() -> None:
    disk = SimulatedDisk()
    disk.make_folder("/logs")
    disk.sync_folder("/")
    log = opened(disk, clean=True)
    for n in range(BATCHES):
        made = (record(i, key=b"key-%d" % ((n + i) % 5), value=b"value-%d" % n) for i in range(2))
        log.append_as_follower(batch(*made, base_offset=2 * n, base_timestamp=NOW, max_timestamp=NOW), FOLLOWED_EPOCH)
    log.flush(also_active=True)
    log.update_high_watermark(log.log_end_offset)
    point, size, expected = log.recovery_point, log.local.segments.size, values(log)
    left: list[SimulatedDisk] = []
    failures = ((0.0, 0), (0.5, 1), (0.5, 2), (1.0, 0))
    disk.on_call = lambda: left.extend(disk.after_power_failure(lost, seed) for lost, seed in failures)

    clean(log, 0, log.log_end_offset, OffsetMap(24 * 100))

    disk.on_call = lambda: None
    sizes = set()
    for found in left:
        again = opened(found, recovery_point=point)
        assert again.log_end_offset == 2 * BATCHES
        assert values(again) == expected
        assert not [name for name in found.names(FOLDER) if name.endswith((".cleaned", ".swap"))]
        sizes.add(again.local.segments.size)
    assert sizes >= {size, log.local.segments.size}
    assert log.local.segments.size < size / 2


def manager(disk: SimulatedDisk) -> LogManager:
    """One whose cleaner runs within its ticks. Its map has room for a part of the keys, so that a tick takes several rounds."""
    sizes = LogConfig(segment_bytes=300, segment_index_bytes=2400, index_interval_bytes=1, file_delete_delay_ms=0)
    default = replace(sizes, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    config = ManagerConfig(log_dirs=("/logs",), num_recovery_threads_per_data_dir=1, cleaner_dedupe_buffer_size=24 * 6)
    return LogManager(
        disk, config, lambda: NOW, lambda: 0.0, lambda: "0" * 32, default=default, only_replica=True, background=AtOnce()
    )


def offsets_by_key(log: UnifiedLog, end: int) -> dict[bytes, list[int]]:
    """The offsets below `end` of each key's records."""
    found: dict[bytes, list[int]] = {}
    for segment in log.local.segments:
        data = segment.read(0, segment.size)
        batches, _ = scan(data)
        for _, records in decode(data, batches):
            for row in records.to_pylist():
                if row["offset"] < end:
                    found.setdefault(row["key"], []).append(row["offset"])
    return found


def test_after_a_crash_at_any_call_of_a_tick_the_checkpoint_covers_no_more_than_what_is_clean() -> None:
    disk = SimulatedDisk()
    disk.make_folder("/logs")
    disk.sync_folder("/")
    running = manager(disk)
    running.start()
    log = running.get_or_create(ORDERS)
    for n in range(9):
        made = (record(i, key=b"key-%d" % ((n + i) % 6), value=b"value-%d" % n) for i in range(2))
        log.append_as_leader(batch(*made, base_timestamp=NOW, max_timestamp=NOW), 0)
    log.flush(also_active=True)
    expected, points = values(log), set()
    left: list[SimulatedDisk] = []
    lost = cycle((0.0, 0.5, 1.0))
    disk.on_call = lambda: left.append(disk.after_power_failure(next(lost), len(left)))

    assert running.tick(NOW) == ()

    disk.on_call = lambda: None
    final = offsets_by_key(log, log.log_end_offset)
    for found in left:
        again = manager(found)
        assert again.start().unopened == ()
        after = again.log(ORDERS)
        assert values(after) == expected
        clean_up_to = again.directories[0].said.cleaner_offsets.get(ORDERS, 0)
        points.add(clean_up_to)
        assert all(len(offsets) == 1 for offsets in offsets_by_key(after, clean_up_to).values())
        assert again.tick(NOW) == ()
        assert offsets_by_key(after, after.log_end_offset) == final
        assert not [name for name in found.names("/logs/orders-0") if name.endswith((".cleaned", ".swap"))]
    assert len(points) > 2
