"""The endpoint on the log directory of a live broker that rolls, deletes, truncates and recreates beneath its readers."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from asked_by_wire import Wire
from asked_endpoint import Endpoint
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from served_endpoint import served

from remote.archive import manifests
from remote.clock import SystemClock
from remote.store.api import ObjectStore
from remote.store.open import open_store
from tiering.cli import main
from tiering.endpoint.protocol.api_keys import FETCH, METADATA, Api
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

AT_ONCE = ("log_retention_check_interval_ms", "log_initial_task_delay_ms", "replica_high_watermark_checkpoint_interval_ms")
BROKER = dict.fromkeys((*AT_ONCE, "log_flush_start_offset_checkpoint_interval_ms", "log_segment_delete_delay_ms"), "100")
SEGMENT_BYTES, VALUE_BYTES = 1 << 20, 20_000
A_SEGMENT = SEGMENT_BYTES // VALUE_BYTES
"""Records, or one fewer."""
SECONDS = 30


@contextmanager
def endpoint_at(data: Path, store: ObjectStore | None) -> Iterator[str]:
    endpoint = Endpoint(data, store, clock=SystemClock())
    endpoint.context.logs.archive_ms_max = 500  # so often topics are listed
    with served(endpoint) as (host, port):
        yield f"{host}:{port}"
    assert [text for text in endpoint.said if "a bug" in text] == []


class Beside:
    """A broker, and endpoints on its log directory: one with an archive, one without."""

    def __init__(self, folder: Path, until_the_end: ExitStack) -> None:
        self.folder, self.data, self.archive = folder, folder / "data", folder / "archive"
        self._broker = until_the_end.enter_context(ExitStack())
        self.start()
        self.create("first", 1)
        self.offload()  # so that there is an archive
        self.local, self.both = (
            until_the_end.enter_context(endpoint_at(self.data, store)) for store in (None, open_store(str(self.archive)))
        )

    def start(self) -> None:
        self.address = self._broker.enter_context(real_kafka.broker(self.folder, **BROKER))
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def stop(self) -> None:
        self._broker.close()

    def create(self, topic: str, records: int = 0) -> None:
        config = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1", "file.delete.delay.ms": "100"}
        done(self.admin.create_topics([NewTopic(topic, 1, 1, config=config)]))
        self.produce(topic, 0, records)

    def produce(self, topic: str, start: int, end: int, of: bytes = b"") -> None:
        """A batch a record, whose value says its number."""
        in_order = {"enable.idempotence": True}  # one request in flight is not enough: one that is sent again may change places
        producer = Producer(
            {"bootstrap.servers": self.address, "log_level": 0, "batch.num.messages": 1, "linger.ms": 0} | in_order
        )
        for number in range(start, end):
            producer.produce(topic, value(number, of), partition=0)
        assert producer.flush(SECONDS) == 0

    def offload(self) -> None:
        command = ["offload", "--log-dir", str(self.data), "--archive", str(self.archive), "--topic", "[!_]*"]
        assert CliRunner().invoke(main, command, catch_exceptions=False).exit_code == 0

    def set(self, topic: str, name: str, text: str) -> None:
        change = ConfigEntry(name, text, incremental_operation=AlterConfigOpType.SET)
        done(self.admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])]))

    def bases(self, topic: str) -> list[int]:
        return sorted(int(file.stem) for file in (self.data / f"{topic}-0").glob("*.log"))


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    with ExitStack() as until_the_end:
        yield Beside(tmp_path_factory.mktemp("beside"), until_the_end)


def value(number: int, of: bytes = b"") -> bytes:
    return (b"%d %s " % (number, of)).ljust(VALUE_BYTES, b".")


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(SECONDS)


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


class Reader:
    """A consumer that reads one topic a little at a time, from an offset on; no offset is taken for another."""

    def __init__(self, address: str, topic: str, offset: int = 0) -> None:
        little = {
            "fetch.queue.backoff.ms": 10,
            "fetch.message.max.bytes": 30_000,
            "queued.min.messages": 1,
            "queued.max.messages.kbytes": 100,
        }
        config = {"bootstrap.servers": address, "group.id": "none", "auto.offset.reset": "error", "log_level": 0, **little}
        self._consumer = Consumer({**config, **real_kafka.AT_ONCE, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, 0, offset)])
        self.values: dict[int, bytes] = {}

    def read(self, end: int) -> KafkaError | None:
        """Until the record before `end`, or an error, which it gives."""
        until = time.monotonic() + SECONDS
        while end - 1 not in self.values:
            message = self._consumer.poll(1)
            assert time.monotonic() < until, f"silence after {max(self.values, default=-1)}"
            if message is not None and message.error():
                return message.error()
            if message is not None:
                self.values[message.offset()] = message.value()
        return None

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def reader() -> Iterator[Callable[..., Reader]]:
    with ExitStack() as closing:

        def made(*args: Any) -> Reader:
            found = Reader(*args)
            closing.callback(found.close)
            return found

        yield made


Readers = Callable[..., Reader]


def ask(address: str, api: Api, version: int, request: object) -> Any:
    wire = Wire(address)
    try:
        return wire.ask(api, version, request)
    finally:
        wire.close()


def topic_id(address: str, topic: str) -> str | None:
    """None if there is no such topic."""
    named = MetadataRequest((MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    (found,) = ask(address, METADATA, 12, named).topics
    return None if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else str(found.topic_id)


def fetched(address: str, version: int, topic: FetchTopic) -> PartitionData:
    """What is answered for one partition."""
    found: PartitionData = ask(address, FETCH, version, FetchRequest(topics=(topic,))).responses[0].partitions[0]
    return found


def offset(address: str, topic: str, spec: OffsetSpec) -> int:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    (future,) = admin.list_offsets({TopicPartition(topic, 0): spec}).values()
    found: int = future.result(SECONDS).offset
    return found


def test_a_reader_at_the_end_is_given_every_record_of_a_broker_that_rolls(beside: Beside, reader: Readers) -> None:
    beside.create("rolls", 1)
    at_the_end = reader(beside.local, "rolls")
    for end in range(1, 4 * A_SEGMENT, A_SEGMENT):
        beside.produce("rolls", max(at_the_end.values, default=0) + 1, end)
        assert at_the_end.read(end) is None
    assert len(beside.bases("rolls")) >= 4
    assert at_the_end.values == {number: value(number) for number in range(end)}


def test_records_that_a_broker_deletes_by_request_are_out_of_range(beside: Beside, reader: Readers) -> None:
    beside.create("cut", 60)
    early = reader(beside.local, "cut")
    assert early.read(1) is None
    done(beside.admin.delete_records([TopicPartition("cut", 0, 40)]))
    eventually(lambda: offset(beside.local, "cut", OffsetSpec.earliest()) == 40)
    error = reader(beside.local, "cut", 39).read(60)
    assert error is not None
    assert error.code() == KafkaError._AUTO_OFFSET_RESET
    later = reader(beside.local, "cut", 40)
    assert later.read(60) is None
    assert list(later.values) == list(range(40, 60))


def test_a_reader_of_deleted_offsets_is_told_so_and_one_of_both_tiers_reads_on(beside: Beside, reader: Readers) -> None:
    end = 6 * A_SEGMENT
    beside.create("expires", end)
    eventually(lambda: topic_id(beside.local, "expires") is not None)
    eventually(lambda: offset(beside.local, "expires", OffsetSpec.latest()) == end)  # the high watermark is written down
    beside.offload()
    active = beside.bases("expires")[-1]
    (manifest,) = manifests(open_store(str(beside.archive)), "expires")
    assert manifest.end_offset == active
    slow, of_both = reader(beside.local, "expires"), reader(beside.both, "expires")
    assert (slow.read(5), of_both.read(5)) == (None, None)
    beside.set("expires", "retention.bytes", str(SEGMENT_BYTES // 2))
    eventually(lambda: beside.bases("expires")[0] == active)
    error = slow.read(end)
    assert error is not None
    assert error.code() == KafkaError._AUTO_OFFSET_RESET
    assert list(slow.values) == list(range(len(slow.values))), "nothing is left out before"
    assert len(slow.values) < active
    assert of_both.read(end) is None
    assert of_both.values == {number: value(number) for number in range(end)}


def test_a_topic_that_is_deleted_and_created_anew_is_another_one(beside: Beside, reader: Readers) -> None:
    beside.create("again", 40)
    former = topic_id(beside.address, "again")
    eventually(lambda: topic_id(beside.local, "again") == former)
    before = reader(beside.local, "again")
    assert before.read(40) is None
    done(beside.admin.delete_topics(["again"]))
    eventually(lambda: topic_id(beside.local, "again") is None)
    of_former = FetchTopic(topic_id=former, partitions=(FetchPartition(0, fetch_offset=5, partition_max_bytes=1),))
    assert fetched(beside.local, 13, of_former).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    beside.create("again")
    beside.produce("again", 0, 10, b"anew")
    eventually(lambda: topic_id(beside.local, "again") == topic_id(beside.address, "again"))
    assert topic_id(beside.address, "again") != former
    assert fetched(beside.local, 13, of_former).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    after = reader(beside.local, "again")
    assert after.read(10) is None
    assert after.values == {number: value(number, b"anew") for number in range(10)}


def test_a_reader_of_records_that_a_broker_has_lost_is_told_where_the_log_goes_on(beside: Beside, reader: Readers) -> None:
    beside.create("lost", 3 * A_SEGMENT)
    end, cut = 3 * A_SEGMENT, A_SEGMENT + 10
    before = reader(beside.local, "lost")
    assert before.read(end) is None
    beside.stop()
    truncate = ["log", "truncate", str(beside.data / "lost-0"), str(cut)]
    assert CliRunner().invoke(main, truncate, catch_exceptions=False).exit_code == 0
    beside.start()
    beside.produce("lost", cut, end - 10, b"anew")
    eventually(lambda: offset(beside.local, "lost", OffsetSpec.latest()) == end - 10)
    for version, asked in ((11, (end, -1)), (12, (end, 0)), (12, (cut + 5, 0)), (12, (end, 1)), (12, (cut, 0))):
        of_lost = FetchPartition(0, fetch_offset=asked[0], last_fetched_epoch=asked[1], partition_max_bytes=1)
        ours, theirs = (fetched(at, version, FetchTopic("lost", partitions=(of_lost,))) for at in (beside.local, beside.address))
        same = [(found.error_code, found.diverging_epoch, found.high_watermark) for found in (ours, theirs)]
        assert same[0] == same[1], asked
    error = before.read(2 * end)
    assert error is not None
    assert error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION)
    assert list(before.values) == list(range(end)), "nothing is given twice, or from behind the cut"
    after = reader(beside.local, "lost")
    assert after.read(end - 10) is None
    assert after.values == {n: value(n, b"anew" if n >= cut else b"") for n in range(end - 10)}
