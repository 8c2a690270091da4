"""A round of cleaning that loses power at any moment: the next start finds the last value of each key."""

from hand_made import batch, record
from logs_at_work import FOLLOWED_EPOCH
from simulated_disk import SimulatedDisk
from small_logs import NOW

from local_log.engine.cleaner import OffsetMap, clean
from local_log.engine.config import read_config
from local_log.engine.local_log import Fetched
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
