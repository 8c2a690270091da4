"""Consumers of the endpoint while what is beneath it fails or changes.

They are given every batch once and in order, an error that clients retry, or are told that the offset is out of range: never
nothing where there are records, and never others than those asked for.
"""

import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest
from archive_fakes import CallNumber, CountingIds, Door, FailsBefore, FixedClock, MemoryStore
from asked_by_wire import Wire
from asked_endpoint import Endpoint
from logs_to_archive import copy_of, drop_segments_below, set_checkpoint
from served_endpoint import served
from tiered_worlds import World, batches_of

from local_log.errors import Unavailable
from local_log.formats.batches import scan
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT
from local_log.formats.list_offsets import EARLIEST
from remote.manifest.store import claim
from remote.manifest.transitions import retained
from tiering.endpoint.protocol.api_keys import FETCH, LIST_OFFSETS, METADATA
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import EpochEndOffset, FetchPartition, FetchRequest
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

T = TypeVar("T")
TOPIC, FOLDER = "g-mixed", "g-mixed-0"
RETRIED = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
"""Errors upon which clients ask for the metadata, and then again."""
BYTES = 20_000
ARCHIVE_S, LOCAL_S = 31, 1
"""After so long the endpoint has looked at what is beneath it."""


@dataclass
class Consumer:
    """Reads on from an offset; `found` is all it was given."""

    endpoint: Endpoint
    offset: int = 0
    found: bytes = b""

    def poll(self) -> int:
        """The error code; without one the batches that it was given follow what it had."""
        answer = self.endpoint.fetch(TOPIC, self.offset, BYTES)
        data = b"".join(answer.records)
        if answer.error_code:
            assert not data
        elif data:
            batches, stop = scan(data)
            assert stop == len(data)
            assert batches.last_offset[0] >= self.offset
            self.offset, self.found = batches.next_offset, self.found + data
        else:
            assert self.offset == answer.high_watermark, "nothing, where there are records"
        return answer.error_code

    def read_on(self, most: int = 10_000) -> int:
        """Polls to the end, or to an error, or so many times; the error code."""
        for _ in range(most):
            before = self.offset
            code = self.poll()
            if code or self.offset == before:
                return code
        return 0


@pytest.fixture
def want(world: World) -> bytes:
    return b"".join(batch.body for batch in batches_of(world.folders["local alone"], FOLDER))


def own(store: MemoryStore) -> MemoryStore:
    """A copy of a store, to change."""
    found = MemoryStore()
    found.objects.update(store.objects)
    return found


def earliest(endpoint: Endpoint) -> int:
    asked = ListOffsetsTopic(TOPIC, (ListOffsetsPartition(0, timestamp=EARLIEST),))
    found: int = endpoint.ask(LIST_OFFSETS, 7, ListOffsetsRequest(-1, topics=(asked,))).topics[0].partitions[0].offset
    return found


@pytest.mark.parametrize("for_long", [False, True])
def test_a_store_that_fails_at_any_request_and_comes_back_costs_no_batch(world: World, want: bytes, for_long: bool) -> None:
    codes, number = set[int](), 0
    while True:
        number += 1
        failing = FailsBefore(world.store, Unavailable("no answer"), CallNumber(number, on=for_long))
        consumer = Consumer(Endpoint(world.folders["some archived dropped"], failing))
        code = consumer.read_on()
        codes.add(code)
        failing.when = lambda verb, key: False
        consumer.endpoint.clock.sleep(ARCHIVE_S)
        assert consumer.read_on() == 0
        assert consumer.found == want, number
        if not code and not consumer.endpoint.said:
            break
    assert number > 5
    assert codes <= {0, *RETRIED}
    assert ErrorCode.KAFKA_STORAGE_ERROR in codes


class Stuck(Door):
    """Does not answer for the objects of one topic until it is let go."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.is_asked, self.may_go = threading.Event(), threading.Event()

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if key.startswith(f"{TOPIC}/") and verb == "get_range":
            self.is_asked.set()
            assert self.may_go.wait(60)
        return call()


def test_a_store_that_is_slow_for_one_topic_holds_up_no_client_of_another(world: World, want: bytes) -> None:
    stuck = Stuck(world.store)
    endpoint = Endpoint(world.folders["archived dropped"], stuck)
    one = endpoint.topic(TOPIC, 11, FetchPartition(0, partition_max_bytes=BYTES))
    assert endpoint.context.logs.topic(TOPIC)
    by_time = ListOffsetsRequest(-1, topics=(ListOffsetsTopic(TOPIC, (ListOffsetsPartition(0, timestamp=1),)),))
    with served(endpoint, request_threads=2, archive_threads=2) as (host, port), ExitStack() as clients:
        wires = [clients.enter_context(closing(Wire(f"{host}:{port}"))) for _ in range(10)]
        slow, timed, quick = wires[:7], wires[7:9], wires[9]
        found = list[bytes]()

        def read(wire: Wire) -> None:
            answer = wire.ask(FETCH, 11, FetchRequest(topics=(one,)))
            found.append(b"".join(answer.responses[0].partitions[0].records))

        readers = [threading.Thread(target=read, args=(wire,)) for wire in slow]
        readers += [threading.Thread(target=wire.ask, args=(LIST_OFFSETS, 7, by_time)) for wire in timed]
        for reader in readers:
            reader.start()
        assert stuck.is_asked.wait(60)
        for _ in range(20):
            assert quick.ask(METADATA, 9, MetadataRequest((MetadataRequestTopic(name="g-tiny"),))).topics[0].partitions
            other = endpoint.topic("g-tiny", 11, FetchPartition(0, partition_max_bytes=BYTES))
            assert quick.ask(FETCH, 11, FetchRequest(topics=(other,))).responses[0].partitions[0].records
        assert not found
        stuck.may_go.set()
        for reader in readers:
            reader.join(60)
    assert len(found) == len(slow)
    assert set(found) == {found[0]}
    assert want.startswith(found[0])


@pytest.mark.parametrize("are_swept", [False, True])
def test_a_reader_whose_batches_retention_takes_is_told_so(world: World, want: bytes, are_swept: bool) -> None:
    store = own(world.store)
    consumer = Consumer(Endpoint(None, store))
    assert consumer.read_on(1) == 0
    manifest = world.archived(FOLDER).archived.manifest
    start = manifest.entries[-1].base_offset
    assert consumer.offset < start
    claim(store, manifest, FixedClock(), CountingIds("f"), "tests").commit(manifest, lambda m: retained(m, start, 0))
    if are_swept:
        for entry in manifest.entries[:-1]:
            for key in [key for key in store.objects if str(entry.segment_id) in key or f"/{entry.base_offset:020d}-" in key]:
                del store.objects[key]
    assert consumer.read_on() == (ErrorCode.KAFKA_STORAGE_ERROR if are_swept else 0)  # the endpoint does not know yet
    consumer.endpoint.clock.sleep(1 if are_swept else ARCHIVE_S)  # what is missing has it look again
    assert consumer.read_on() == (ErrorCode.OFFSET_OUT_OF_RANGE if are_swept else 0)
    assert want.startswith(consumer.found)
    late = Consumer(consumer.endpoint)
    assert late.read_on() == ErrorCode.OFFSET_OUT_OF_RANGE
    late.offset = earliest(consumer.endpoint)
    assert late.offset == start
    assert late.read_on() == 0
    archived = [b for b in batches_of(world.folders["local alone"], FOLDER) if b.last_offset < manifest.end_offset]
    assert late.found == b"".join(b.body for b in archived if b.last_offset >= start)


def test_a_reader_of_a_log_directory_whose_segments_are_deleted_is_told_so(world: World, want: bytes, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    consumer = Consumer(Endpoint(folder, None))
    assert consumer.read_on(1) == 0
    middle = sorted(int(file.stem) for file in (folder / FOLDER).glob("*.log"))[-3]
    assert consumer.offset < middle
    drop_segments_below(folder, FOLDER, middle)
    assert consumer.poll() in (0, *RETRIED)
    consumer.endpoint.clock.sleep(LOCAL_S)
    late = Consumer(consumer.endpoint)
    assert late.read_on() == ErrorCode.OFFSET_OUT_OF_RANGE
    late.offset = earliest(consumer.endpoint)
    assert (late.offset, late.read_on()) == (middle, 0)
    assert want.endswith(late.found)


def test_a_reader_at_the_end_is_given_what_a_broker_appends_and_rolls(world: World, want: bytes, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    bases = sorted(int(file.stem) for file in (folder / FOLDER).glob("*.log"))
    end = world.log("local alone", FOLDER).end_offset()
    later = [file for base in bases[-2:] for file in (folder / FOLDER).glob(f"{base:020d}.*")]
    (tmp_path / "later").mkdir()
    for file in later:
        file.rename(tmp_path / "later" / file.name)
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, FOLDER, bases[-2])
    consumer = Consumer(Endpoint(folder, None))
    assert (consumer.read_on(), consumer.offset) == (0, bases[-2])
    for high_watermark, names in ((bases[-1], later[: len(later) // 2]), (end, later)):
        for file in names:
            shutil.copy(tmp_path / "later" / file.name, file)
        set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, FOLDER, high_watermark)
        consumer.endpoint.clock.sleep(LOCAL_S)
        assert (consumer.read_on(), consumer.offset) == (0, high_watermark)
    assert consumer.found == want


def test_a_reader_of_a_log_that_is_truncated_is_told_where_it_parted(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    consumer = Consumer(Endpoint(folder, None))
    assert consumer.read_on() == 0
    bases = sorted(int(file.stem) for file in (folder / FOLDER).glob("*.log"))
    for file in (folder / FOLDER).glob(f"{bases[-1]:020d}.*"):
        file.unlink()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, FOLDER, bases[-1])
    (folder / FOLDER / LEADER_EPOCH_CHECKPOINT).write_text(f"0\n2\n0 0\n4 {bases[-1]}\n")
    consumer.endpoint.clock.sleep(LOCAL_S)
    assert consumer.poll() == ErrorCode.OFFSET_OUT_OF_RANGE
    parted = consumer.endpoint.fetch(TOPIC, consumer.offset, version=12, last_fetched_epoch=0)
    assert (parted.error_code, parted.diverging_epoch, parted.records) == (0, EpochEndOffset(0, bases[-1]), ())
    consumer.offset = bases[-1]
    assert consumer.poll() == 0


def test_a_topic_that_is_deleted_and_created_anew_is_another_one(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    consumer = Consumer(Endpoint(folder, None))
    former = consumer.endpoint.topic(TOPIC, 13, FetchPartition(0, partition_max_bytes=BYTES))
    assert consumer.read_on(1) == 0
    (folder / FOLDER).rename(folder / f"{FOLDER}.0123456789abcdef0123456789abcdef-delete")
    assert consumer.poll() in (0, *RETRIED)
    consumer.endpoint.clock.sleep(ARCHIVE_S)
    assert consumer.poll() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    by_id = consumer.endpoint.ask(FETCH, 13, FetchRequest(topics=(former,))).responses[0].partitions[0]
    assert by_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    shutil.copytree(folder / "g-tiny-0", folder / FOLDER)
    (folder / FOLDER / "partition.metadata").write_text(f"version: 0\ntopic_id: {'new' + 'A' * 19}")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, FOLDER, 1)
    consumer.endpoint.clock.sleep(ARCHIVE_S)
    by_id = consumer.endpoint.ask(FETCH, 13, FetchRequest(topics=(former,))).responses[0].partitions[0]
    assert by_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert consumer.poll() == ErrorCode.OFFSET_OUT_OF_RANGE
    anew = Consumer(consumer.endpoint)
    assert anew.read_on() == 0
    assert anew.found == b"".join(batch.body for batch in batches_of(world.folders["local alone"], "g-tiny-0"))


@pytest.mark.parametrize("object_kind", [".log", ".aux"])
@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_a_damaged_object_of_the_archive_is_an_error_and_no_wrong_answer(
    world: World, want: bytes, object_kind: str, damage: str
) -> None:
    store = own(world.store)
    for key in [key for key in store.objects if key.startswith(f"{TOPIC}/") and key.endswith(object_kind)]:
        body = store.objects[key]
        if damage == "gone":
            del store.objects[key]
        else:
            middle = len(body) // 2
            store.objects[key] = (
                body[:middle] if damage == "cut" else body[:middle] + bytes([body[middle] ^ 4]) + body[middle + 1 :]
            )
    endpoint = Endpoint(None, store)
    consumer = Consumer(endpoint)
    code = consumer.read_on()
    assert code in (0, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE)
    assert want.startswith(consumer.found)
    assert bool(code) == bool(endpoint.said)
    asked = ListOffsetsTopic(TOPIC, (ListOffsetsPartition(0, timestamp=1_700_000_000_500),))
    request = ListOffsetsRequest(-1, topics=(asked,))
    right, found = (one.ask(LIST_OFFSETS, 7, request).topics[0].partitions[0] for one in (Endpoint(None, world.store), endpoint))
    assert found == right or found.error_code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE)
    if object_kind == ".log":
        assert code
