"""A real broker and our log manager take turns on one log directory: each starts on what the other has left."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from hand_made import batch, record

from local_log.engine.config import LogConfig
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.errors import Invalid
from local_log.formats import filenames
from local_log.os_disk import OsWritableDisk
from remote.clock import RandomIds, SystemClock, jitter
from tiering.cli import main

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

CONFIG = LogConfig(segment_bytes=1 << 20, segment_index_bytes=65536)
EVENTS = [filenames.TopicPartition("events", number) for number in range(2)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a broker and its log directory `data` are."""
    return tmp_path


def manager(folder: Path) -> LogManager:
    config = ManagerConfig(log_dirs=(str(folder / "data"),))
    return LogManager(OsWritableDisk(), config, SystemClock().now_ms, jitter, RandomIds().new_id, default=CONFIG)


def create(address: str) -> None:
    settings = {"retention.ms": "-1", "segment.bytes": "1048576"}
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("events", 2, 1, config=settings)])["events"].result()


def produce(address: str, first: int, records: int) -> None:
    """Numbered records, some of them in transactions that are aborted, with a codec that changes."""
    for at, codec in enumerate(("none", "gzip", "lz4", "zstd")):
        producer = Producer({"bootstrap.servers": address, "log_level": 0, "compression.codec": codec, "transactional.id": codec})
        producer.init_transactions()
        for aborts in (True, False):
            producer.begin_transaction()
            for number in range(first + at, first + records, 4):
                producer.produce("events", b"aborted" if aborts else b"%d" % number + bytes(number % 900), None, number % 2)
                producer.poll(0)
            producer.flush()
            producer.abort_transaction() if aborts else producer.commit_transaction()


def consumed(address: str) -> set[int]:
    config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({**config, **real_kafka.AT_ONCE, "enable.auto.commit": False, "log_level": 0, "check.crcs": True})
    consumer.assign([TopicPartition("events", number, 0) for number in range(2)])
    found: list[int] = []
    ended = 0
    while ended < 2:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found.append(int((message.value() or b"").rstrip(b"\0")))
    consumer.close()
    assert len(found) == len(set(found))
    return set(found)


def consumed_in_the_end(address: str, expected: set[int]) -> set[int]:
    """What a consumer is given once the coordinator has written the markers that it owes.

    A broker that is killed before may forget them: it takes a topic that it does not know yet for one that is deleted.
    """
    deadline = time.monotonic() + 60
    while (found := consumed(address)) != expected and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def recovered(folder: Path) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["log", "recover", str(folder / "data"), "-c", "segment.index.bytes=65536"])
    assert (done.exit_code, done.stderr) == (0, "")
    rows = map(json.loads, done.stdout.splitlines())
    return {f"{row['topic']}-{row['partition']}": row for row in rows}


def indexes_written(folder: Path) -> dict[str, int]:
    """When the index files of the segments that are not written to any more were."""
    found: dict[str, int] = {}
    for partition in EVENTS:
        for log in sorted((folder / "data" / str(partition)).glob("*.log"))[:-1]:
            files = log.with_suffix(".index"), log.with_suffix(".timeindex")
            found |= {f"{partition}/{file.name}": file.stat().st_mtime_ns for file in files}
    return found


@pytest.mark.parametrize("killed", [False, True])
def test_a_broker_starts_cleanly_on_what_we_stopped_and_we_on_what_a_broker_left(folder: Path, killed: bool) -> None:
    with real_kafka.broker(folder, killed=killed) as address:
        create(address)
        produce(address, 0, 20_000)
        with pytest.raises(Invalid, match="a broker or another process of ours is using this log directory"):
            manager(folder).start()
        produce(address, 20_000, 4_000)
        everything = set(range(24_000))
        assert consumed_in_the_end(address, everything) == everything
    assert (folder / "data" / ".kafka_cleanshutdown").exists() is not killed
    assert (folder / "data" / ".lock").exists() is killed

    state = recovered(folder)
    assert {"events-0", "events-1"} <= state.keys()

    # Nothing says any more what was flushed: a broker that did not believe our mark would make every index anew.
    (folder / "data" / "recovery-point-offset-checkpoint").unlink()
    before = indexes_written(folder)
    assert before
    # The controller registers a broker again once it takes the killed one for gone, by default after 9 s.
    with real_kafka.broker(folder, broker_session_timeout_ms="3000", broker_heartbeat_interval_ms="500") as address:
        assert indexes_written(folder) == before
        assert consumed(address) == everything
        produce(address, 24_000, 1_000)
    ours = manager(folder)
    assert ours.start().unopened == ()
    assert all(directory.was_clean for directory in ours.directories)
    ends = {str(p): ours.log(p).log_end_offset for p in EVENTS}
    assert all(ends[name] > state[name]["log_end_offset"] for name in ends)
    assert ours.stop() == ()


def test_a_consumer_reads_what_our_manager_appended_and_a_broker_leaves_our_directory_alone(folder: Path) -> None:
    with real_kafka.broker(folder) as address:
        create(address)
        produce(address, 0, 1_000)
    ours = manager(folder)
    ours.start()
    for number in range(1_000, 6_000):
        log = ours.log(EVENTS[number % 2])
        epoch = log.epochs.latest_epoch
        assert epoch is not None
        log.append_as_leader(batch(record(key=None, value=b"%d" % number + bytes(number % 900))), epoch)
        log.update_high_watermark(log.log_end_offset)
    with pytest.raises(RuntimeError, match="the broker ended"), real_kafka.broker(folder):
        pytest.fail("the broker runs in our directory")
    assert ours.tick(SystemClock().now_ms() + 60_000) == ()
    assert ours.stop() == ()
    with real_kafka.broker(folder) as address:
        assert consumed(address) == set(range(6_000))


def test_a_broker_that_starts_on_our_deletion_finishes_it(folder: Path) -> None:
    with real_kafka.broker(folder) as address:
        create(address)
    ours = manager(folder)
    ours.start()
    ours.delete(EVENTS[1])
    assert ours.stop() == ()
    with real_kafka.broker(folder, log_segment_delete_delay_ms="0", log_initial_task_delay_ms="0") as address:
        produce(address, 0, 100)
    assert [f.name for f in (folder / "data").iterdir() if f.name.endswith("-delete")] == []
