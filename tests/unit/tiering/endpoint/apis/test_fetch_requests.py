import os
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import Door, MemoryStore
from asked_endpoint import Endpoint, bytes_of, response_of
from golden_logs import legacy_logs, live, partitions
from logs_to_archive import copy_of, set_checkpoint
from made_archive import batch_of, made
from tiered_worlds import ARCHIVED, World, batches_of

from local_log.file_range import FileRange
from local_log.formats.batches import scan
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from remote.read.shared_reads import SharedReads
from remote.read.window_cache import WindowCache
from remote.store.open import open_store
from remote.transforms.encoder import Transforms
from tiering.endpoint.apis.kafka_apis import Waits, handle, handle_at_once
from tiering.endpoint.protocol.api_keys import FETCH, METADATA
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import EpochEndOffset, FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.reads import Reads
from tiering.read.tiered_log import Isolation


@pytest.fixture
def endpoint(world: World, shape: str) -> Endpoint:
    return Endpoint(world.folders[shape], None if shape == "local alone" else world.store)


def sizes_of(endpoint: Endpoint, request: FetchRequest) -> list[int]:
    """The bytes of each topic's only partition."""
    answer = endpoint.ask(FETCH, 11, request)
    return [sum(map(len, topic.partitions[0].records)) for topic in answer.responses]


def followed(endpoint: Endpoint, topic: str, size: int, version: int, level: int = 0) -> bytes:
    """All batches, as a consumer fetches them."""
    offset, found = answer_start(endpoint, topic), bytearray()
    while answer := endpoint.fetch(topic, offset, size, version=version, level=level):
        assert answer.error_code == 0
        data = b"".join(answer.records)
        if not data:
            return bytes(found)
        batches, stop = scan(data)
        assert stop == len(data)
        assert batches.last_offset[0] >= offset
        offset = batches.next_offset
        found += data
    raise AssertionError


def answer_start(endpoint: Endpoint, topic: str) -> int:
    hosted = endpoint.context.logs.topic(topic)
    assert hosted is not None
    return hosted.partitions[0].log_start_offset


@pytest.mark.parametrize("partition", ["g-txn-0", "g-compacted-0", "g-trimmed-0", "g-big-0"])
def test_fetches_in_a_row_give_every_batch_of_both_tiers_once(endpoint: Endpoint, world: World, partition: str) -> None:
    batches = batches_of(world.folders["local alone"], partition)
    start = answer_start(endpoint, partition[:-2])
    want = b"".join(b.body for b in batches if b.last_offset >= start)
    for size, version in ((1, 4), (20_000, 12), (1 << 30, 18)):
        assert followed(endpoint, partition[:-2], size, version) == want
    assert endpoint.said == []


def test_every_golden_partition_is_fetched_as_it_lies_there(world: World) -> None:
    endpoint = Endpoint(world.folders["some archived dropped"], world.store)
    for partition in partitions():
        batches = batches_of(world.folders["local alone"], partition)
        start = answer_start(endpoint, partition[:-2])
        assert followed(endpoint, partition[:-2], 50_000, 11) == b"".join(b.body for b in batches if b.last_offset >= start)


def test_an_archive_alone_ends_where_it_was_archived_to(world: World) -> None:
    endpoint = Endpoint(None, world.store)
    for partition in ARCHIVED:
        answer = endpoint.fetch(partition[:-2], answer_start(endpoint, partition[:-2]))
        log = world.archived(partition)
        assert answer.high_watermark == answer.last_stable_offset == log.end_offset()
        assert b"".join(answer.records) == log.fetch(log.log_start_offset, 1 << 30).records


def test_committed_reads_end_at_the_last_stable_offset_and_list_what_was_aborted(endpoint: Endpoint, world: World) -> None:
    log = world.log("local alone", "g-txn-0")
    want = log.fetch(0, 1 << 30, Isolation.read_committed)
    answer = endpoint.fetch("g-txn", 0, level=1)
    assert answer.last_stable_offset == live("g-txn-0")["last_stable_offset"]
    assert answer.high_watermark == log.end_offset()
    assert b"".join(answer.records) == want.records
    assert {(t.producer_id, t.first_offset) for t in answer.aborted_transactions} >= {
        (t.producer_id, t.first_offset) for t in want.aborted
    }
    assert endpoint.fetch("g-txn", 0).aborted_transactions is None


def test_what_is_outside_of_the_log_is_out_of_range(endpoint: Endpoint) -> None:
    for offset in (-1, 1233, 3001):
        answer = endpoint.fetch("g-trimmed", offset)
        assert (answer.error_code, answer.high_watermark, answer.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, ())
    assert endpoint.fetch("g-trimmed", 3000).error_code == 0
    assert endpoint.said == []


def test_what_is_not_committed_is_in_range_and_not_given(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "lagging")
    log_end = world.log("local alone", "g-trimmed-0").end_offset()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-trimmed-0", log_end - 500)
    endpoint = Endpoint(folder, None)
    for offset in (log_end - 500, log_end - 1, log_end):
        for version, level in ((3, 0), (11, 0), (11, 1)):
            answer = endpoint.fetch("g-trimmed", offset, version=version, level=level)
            assert (answer.error_code, answer.high_watermark, answer.records) == (ErrorCode.NONE, log_end - 500, ())
    assert endpoint.fetch("g-trimmed", log_end + 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_only_offsets_above_the_known_end_make_the_topic_load_anew(world: World) -> None:
    endpoint = Endpoint(None, world.store)
    known = endpoint.context.logs.topic("g-trimmed")
    assert known is not None
    start, end = known.partitions[0].log_start_offset, known.partitions[0].end_offset()
    for offset, is_loaded_anew in ((start - 1, False), (end + 1, True)):
        endpoint.clock.sleep(2)
        assert endpoint.fetch("g-trimmed", offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        found = endpoint.context.logs.topic("g-trimmed")
        assert found is not None
        assert (found.loaded_ms > known.loaded_ms) == is_loaded_anew


def test_unknown_topics_and_partitions_are_told_by_name_and_by_id(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    assert endpoint.fetch("nowhere", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked = FetchRequest(topics=(FetchTopic(topic_id="B" * 21 + "A", partitions=(FetchPartition(0),)),))
    assert endpoint.ask(FETCH, 13, asked).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    wrong = FetchRequest(topics=(FetchTopic("g-tiny", partitions=(FetchPartition(7),)),))
    assert endpoint.ask(FETCH, 4, wrong).responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_client_with_another_leader_epoch_is_told_so(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    newest = world.log("local alone", "g-epochs-0").local.leader_epochs[-1].epoch
    codes = [endpoint.fetch("g-epochs", 0, current_leader_epoch=epoch).error_code for epoch in (newest - 1, newest, newest + 1)]
    assert codes == [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NONE, ErrorCode.UNKNOWN_LEADER_EPOCH]


def test_a_client_whose_log_has_parted_is_told_where(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    epochs = world.log("local alone", "g-epochs-0").local.leader_epochs
    beyond = epochs[1].start_offset + 1
    answer = endpoint.fetch("g-epochs", beyond, version=12, last_fetched_epoch=epochs[0].epoch)
    assert answer.diverging_epoch == EpochEndOffset(epochs[0].epoch, epochs[1].start_offset)
    assert answer.records == ()
    same = endpoint.fetch("g-epochs", epochs[1].start_offset, version=12, last_fetched_epoch=epochs[0].epoch)
    assert same.diverging_epoch == EpochEndOffset()
    assert same.records != ()
    between = epochs[1].epoch - 1
    assert between > epochs[0].epoch
    below = endpoint.fetch("g-epochs", -1, version=12, last_fetched_epoch=between)  # before the log, whatever the epochs say
    assert (below.error_code, below.diverging_epoch) == (ErrorCode.OFFSET_OUT_OF_RANGE, EpochEndOffset())


def test_a_consumer_in_a_gap_between_segments_is_given_the_next_batch_however_few_bytes_it_asks_for(endpoint: Endpoint) -> None:
    want = endpoint.fetch("g-compacted", 918, 1).records
    assert want
    for offset in (500, 917, 918):
        assert [endpoint.fetch("g-compacted", offset, size).records for size in (0, 1)] == [want] * 2


def test_all_partitions_of_a_request_share_its_bytes_and_the_first_has_one_batch(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    names = ("g-empty", "g-mixed", "g-txn", "g-appendtime")
    asked = tuple(endpoint.topic(name, 11, FetchPartition(0, partition_max_bytes=1 << 20)) for name in names)
    sizes = [sizes_of(endpoint, FetchRequest(max_bytes=most, topics=asked)) for most in (1, 30_000, 1024)]
    assert sizes[0][0] == sizes[0][2] == sizes[0][3] == 0
    assert sizes[0][1] > 1
    assert sizes[1][1] > 0
    assert sum(sizes[1]) <= 30_000
    endpoint.configure("fetch.max.bytes=1024")
    assert sizes_of(endpoint, FetchRequest(topics=asked)) == sizes[2]


@pytest.mark.parametrize("version", [3, 11])
def test_partitions_after_a_full_answer_cost_no_store_request(world: World, version: int) -> None:
    door = Door(world.store)
    endpoint = Endpoint(None, door)
    names = ("g-codec-lz4", "g-txn", "g-compacted")
    asked = tuple(
        endpoint.topic(name, version, FetchPartition(0, fetch_offset=answer_start(endpoint, name), partition_max_bytes=1 << 20))
        for name in names
    )
    counts = []
    for topics in (asked[:1], asked):
        door.calls.clear()
        answer = endpoint.ask(FETCH, version, FetchRequest(max_bytes=1, topics=topics))
        assert [bool(topic.partitions[0].records) for topic in answer.responses] == [True, False, False][: len(topics)]
        assert all(topic.partitions[0].error_code == 0 for topic in answer.responses)
        counts.append(len(door.calls))
    assert counts[0] > 0
    assert counts[1] <= counts[0]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_clients_before_the_rule_of_one_batch_are_told_that_a_message_is_larger(world: World, version: int) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    names = ("g-codec-lz4", "g-txn", "g-tiny")
    end = endpoint.context.logs.topic("g-tiny").partitions[0].end_offset()  # type: ignore[union-attr]
    for max_bytes in (1, 12, 100):
        asked = tuple(
            endpoint.topic(
                name, version, FetchPartition(0, fetch_offset=end if name == "g-tiny" else 0, partition_max_bytes=max_bytes)
            )
            for name in names
        )
        found = [b"".join(t.partitions[0].records) for t in endpoint.ask(FETCH, version, FetchRequest(topics=asked)).responses]
        assert [len(data) for data in found] == [min(12, max_bytes)] * 2 + [0]
        if max_bytes >= 12:
            assert int.from_bytes(found[0][8:12], "big") > len(found[0]) - 12
    whole = b"".join(endpoint.fetch("g-codec-lz4", 0, 1 << 20, version=version).records)
    assert len(whole) > 12
    assert b"".join(endpoint.fetch("g-codec-lz4", 0, 1, version=3).records) != b""


def test_a_fetch_with_too_little_waits_unless_it_has_an_error(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)

    def asked(offset: int, min_bytes: int = 1, max_wait_ms: int = 500) -> FetchRequest:
        one = endpoint.topic("g-tiny", 11, FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20))
        return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=(one,))

    assert endpoint.ask(FETCH, 11, asked(1)) is None
    assert endpoint.ask(FETCH, 11, asked(0, min_bytes=10_000)) is None
    nothing = FetchRequest(max_wait_ms=500, min_bytes=1)
    for at_once in (asked(0), asked(2), asked(1, min_bytes=0), asked(1, max_wait_ms=0), nothing):
        assert endpoint.ask(FETCH, 11, at_once) is not None


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_old_clients_get_the_message_format_that_they_know(world: World, version: int, magic: int) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    answer = endpoint.fetch("g-codec-lz4", 0, 20_000, version=version)
    batches, _ = scan(b"".join(answer.records))
    assert set(batches.header["magic"].tolist()) == {magic}
    assert batches.base_offset[0] <= 0 <= batches.last_offset[-1]
    refused = endpoint.fetch("g-codec-zstd", 0, 20_000, version=version)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_messages_of_old_formats_are_sent_as_they_are(tmp_path: Path) -> None:
    endpoint = Endpoint(legacy_logs(tmp_path, "g-v0-gzip-0", "g-v1-none-create-0"), None)
    for name in ("g-v0-gzip-0", "g-v1-none-create-0"):
        assert b"".join(endpoint.fetch(name[:-2], 0).records) == b"".join(b.body for b in batches_of(tmp_path, name))


@pytest.mark.parametrize("compress", [False, True])
def test_an_archive_in_a_folder_is_sent_from_its_files_where_these_are_the_logs_own(tmp_path: Path, compress: bool) -> None:
    store = open_store(str(tmp_path))
    made(store, [[range(3), range(3, 5)], [range(5, 9)]], transforms=Transforms(compress, None))
    endpoint = Endpoint(None, store)
    want = batch_of(0, range(3)) + batch_of(3, range(3, 5)) + batch_of(5, range(5, 9))
    for size in (1, 1 << 20):
        assert followed(endpoint, "made", size, 11) == want
    log = endpoint.context.logs.topic("made").partitions[0]
    parts = endpoint.context.reads.read(log, 0, 1 << 20, Isolation.read_uncommitted, one_at_least=True).parts
    assert [isinstance(part, FileRange) for part in parts] == [not compress] * 2


def test_an_archive_in_a_folder_is_damaged_where_a_file_is_cut_or_gone(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    made(store, [[range(3), range(3, 5)], [range(5, 9)], [range(9, 12)]])
    files = sorted(tmp_path.rglob("*.log"))
    os.truncate(files[1], files[1].stat().st_size - 1)
    files[2].unlink()
    endpoint = Endpoint(None, store)
    first = endpoint.fetch("made", 0)
    assert b"".join(first.records) == batch_of(0, range(3)) + batch_of(3, range(3, 5))
    codes = [endpoint.fetch("made", offset).error_code for offset in (5, 9)]
    assert codes == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR]
    assert ["ends here" in endpoint.said[0], "it is not there" in endpoint.said[1]] == [True, True]


def test_a_fetch_of_what_was_checked_is_answered_at_once_and_others_on_a_thread(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)

    def asked(name: str, offset: int, level: int = 0, version: int = 11) -> bytes:
        one = endpoint.topic(name, version, FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20))
        request = FetchRequest(max_wait_ms=500, min_bytes=1, isolation_level=level, topics=(one,))
        return write_request(RequestHeader(FETCH, version, 99, "test"), request)[4:]

    def answered(frame: bytes) -> tuple[bool, object]:
        found = handle_at_once(frame, endpoint.connection, replace(endpoint.context, may_wait=False))
        return not callable(found), found() if callable(found) else found

    def sent(found: object) -> bytes:
        return b"".join(map(bytes_of, found))

    for version in (4, 11, 18):
        frame = asked("g-mixed", 0, version=version)
        answered(frame)
        first, again = handle(frame, endpoint.connection, endpoint.context), answered(frame)
        assert (again[0], sent(again[1])) == (True, sent(first))
    assert answered(asked("g-mixed", 0, level=1))[0] is False
    assert answered(asked("g-mixed", 0, version=3))[0] is False
    is_at_once, waits = answered(asked("g-tiny", 1))
    is_at_once, waits = answered(asked("g-tiny", 1))
    assert (is_at_once, type(waits)) == (True, Waits)
    out_of_range = answered(asked("g-mixed", 1 << 40))
    assert out_of_range[0]
    assert response_of(FETCH, 11, sent(out_of_range[1])).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    endpoint.clock.sleep(1)
    assert answered(asked("g-mixed", 0))[0] is False  # the log is looked at again
    assert answered(write_request(RequestHeader(METADATA, 9, 99, "test"), MetadataRequest())[4:])[0] is False


@pytest.mark.parametrize("shape", [None, "some archived dropped"])
@pytest.mark.parametrize("cache_bytes", [0, 1 << 16, 1 << 28])
def test_batches_are_the_same_however_little_room_the_chunk_cache_has(world: World, shape: str | None, cache_bytes: int) -> None:
    endpoint = Endpoint(None if shape is None else world.folders[shape], world.store)
    cache = WindowCache(cache_bytes, window_bytes=1 << 15, chunk_bytes=1 << 13)
    endpoint.context = replace(endpoint.context, reads=Reads(shared=SharedReads(cache)))
    for name in ("g-mixed", "g-codec-lz4"):
        got = followed(endpoint, name, 20_000, 11)
        start, end = answer_start(endpoint, name), endpoint.fetch(name, answer_start(endpoint, name)).high_watermark
        want = [b for b in batches_of(world.folders["local alone"], f"{name}-0") if start <= b.last_offset < end]
        assert got == b"".join(b.body for b in want)
    assert endpoint.said == []


@pytest.mark.parametrize("level", [0, 1])
def test_what_one_consumer_has_read_of_a_store_others_are_given_at_once(world: World, level: int) -> None:
    door = Door(world.store)
    endpoint = Endpoint(None, door)
    first = followed(endpoint, "g-txn", 20_000, 11, level)
    door.calls.clear()
    assert followed(endpoint, "g-txn", 20_000, 11, level) == first
    assert [call for call in door.calls if call[0] == "get_range"] == []
    one = endpoint.topic("g-txn", 11, FetchPartition(0, partition_max_bytes=20_000))
    request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=(one,), isolation_level=level)
    frame = write_request(RequestHeader(FETCH, 11, 99, "test"), request)[4:]
    found = handle_at_once(frame, endpoint.connection, replace(endpoint.context, may_wait=False))
    assert callable(found) == bool(level)


def test_a_session_goes_on_by_one_whether_its_fetches_are_answered_at_once_or_not(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    one = endpoint.topic("g-mixed", 11, FetchPartition(0, partition_max_bytes=1))
    session = endpoint.ask(FETCH, 11, FetchRequest(session_epoch=0, topics=(one,))).session_id
    kinds = []
    for epoch in (1, 2, 3):
        request = FetchRequest(session_id=session, session_epoch=epoch)
        frame = write_request(RequestHeader(FETCH, 11, 99, "test"), request)[4:]
        found = handle_at_once(frame, endpoint.connection, replace(endpoint.context, may_wait=False))
        kinds.append(callable(found))
        answer = response_of(FETCH, 11, b"".join(map(bytes_of, found() if callable(found) else found)))
        assert (answer.error_code, answer.session_id) == (0, session)
        endpoint.clock.sleep(1 if epoch == 1 else 0)
    assert kinds == [False, True, False]


def test_a_session_of_many_partitions_goes_on_on_a_thread(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    many = endpoint.topic("g-mixed", 11, *(FetchPartition(number, partition_max_bytes=1) for number in range(17)))
    session = endpoint.ask(FETCH, 11, FetchRequest(session_epoch=0, topics=(many,))).session_id
    frame = write_request(RequestHeader(FETCH, 11, 99, "test"), FetchRequest(session_id=session, session_epoch=1))[4:]
    known = endpoint.sessions.get(session)
    assert known is not None
    with known.lock:  # as a request of another connection may
        found = handle_at_once(frame, endpoint.connection, replace(endpoint.context, may_wait=False))
    assert callable(found)
    answer = response_of(FETCH, 11, b"".join(map(bytes_of, found())))
    assert (answer.error_code, answer.session_id) == (0, session)


def test_a_damaged_batch_is_reported_and_told_and_never_sent(world: World) -> None:
    store = MemoryStore()
    store.objects.update(world.store.objects)
    log = next(key for key in store.objects if key.startswith("g-mixed/") and key.endswith(".log"))
    store.objects[log] = store.objects[log][:100] + bytes([store.objects[log][100] ^ 1]) + store.objects[log][101:]
    endpoint = Endpoint(None, store)
    answer = endpoint.fetch("g-mixed", 0)
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
    assert answer.records == ()
    assert "a fetch of g-mixed-0 at 0" in endpoint.said[0]


@pytest.mark.parametrize("version", [1, 3])
def test_an_old_client_at_an_emptied_batch_knows_that_it_has_to_ask_for_more(world: World, version: int) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    cut = b"".join(endpoint.fetch("g-compacted", 0, 100, version=version).records)
    assert cut == b"\xff" * 8 + (61).to_bytes(4, "big")
    batches, _ = scan(b"".join(endpoint.fetch("g-compacted", 0, 2_000, version=version).records))
    assert len(batches)
