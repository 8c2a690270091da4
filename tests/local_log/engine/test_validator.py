"""What a leader keeps, writes anew and refuses, batch by batch."""

from typing import Any

import pyarrow as pa
import pytest
from hand_made import APPEND_TIME, DELETE_HORIZON, TRANSACTIONAL, batch, body, decoded, field, message, record, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log.engine.config import read_config
from local_log.engine.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, Refused, UnknownServerError
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers import Origin
from local_log.engine.validator import Rules, Validated, rules_of, validate
from local_log.formats.batch_header import BATCH_HEADER_BYTES, BatchHeader, read_batch_header
from local_log.formats.batch_v2 import check_crcs, scan
from local_log.formats.batch_v2_writer import RECORDS, NewBatch, write_batch, write_marker
from local_log.formats.checksum import crc32
from local_log.formats.compression import compress, inflate
from local_log.formats.control import ControlType
from local_log.formats.record import Codec, TimestampType

NOW = 1_700_000_000_000
FIRST = 1_234_567
PRODUCER = {"producer_id": 1_324, "producer_epoch": 10, "base_sequence": 984, "is_transactional": True}
WORDS = (b"hello", b"there", b"beautiful")
TIMES = (NOW - 1, NOW + 1, NOW)

every_codec = pytest.mark.parametrize("codec", Codec)
every_target = pytest.mark.parametrize("target", Codec)


def rows(values: Any = WORDS, times: Any = TIMES, key: bytes | None = b"k", headers: Any = ()) -> pa.RecordBatch:
    pairs = [{"key": name, "value": value} for name, value in headers]
    made = [
        {"offset": n, "timestamp": time, "key": key, "value": value, "headers": pairs}
        for n, (value, time) in enumerate(zip(values, times, strict=True))
    ]
    return pa.RecordBatch.from_pylist(made, schema=RECORDS)


def sent(codec: Codec = Codec.none, columns: pa.RecordBatch | None = None, **about: Any) -> bytes:
    """A producer's batch."""
    return write_batch(NewBatch(0, codec, **about), rows() if columns is None else columns)


def validated(records: Any, **about: Any) -> Validated:
    """Validates with what a topic has by default, but for what `about` says."""
    topic = Rules(
        codec=about.get("target"),
        level=about.get("level"),
        is_compacted=about.get("compacted", False),
        is_append_time=about.get("append_time", False),
        before_max_ms=about.get("before", 1_000),
        after_max_ms=about.get("after", 1_000),
    )
    batches = memory_batches(records)
    source = about.get("source", batches[0].codec & 7 if batches else Codec.none)
    origin = about.get("origin", Origin.CLIENT)
    first = about.get("first", FIRST)
    return validate(records, batches, first, NOW, topic, source_codec=source, leader_epoch=40, origin=origin)


def appended(result: Validated) -> tuple[BatchHeader, list[dict[str, Any]]]:
    """The header and the records of the one batch, whose checksum holds."""
    batches, stop = scan(result.records)
    assert (len(batches), stop) == (1, len(result.records))
    check_crcs(result.records, batches)
    return read_batch_header(result.records), decoded(result.records, batches).to_pylist()


def changed(made: bytes, **fields: Any) -> bytes:
    """The batch under a header with other fields; its checksum is not the validator's to check."""
    return read_batch_header(made)._replace(**fields).pack() + made[BATCH_HEADER_BYTES:]


# --- kept ---


@every_codec
def test_a_batch_of_the_topic_s_codec_keeps_its_bytes_but_for_offset_and_epoch(codec: Codec) -> None:
    made = sent(codec, **PRODUCER)
    result = validated(made)
    assert result.records == changed(made, base_offset=FIRST, partition_leader_epoch=40)
    assert (result.is_rebuilt, result.records_rebuilt) == (False, 0)
    assert (result.max_timestamp, result.last_offset) == (NOW + 1, FIRST + 2)
    header, records = appended(result)
    assert [r["offset"] for r in records] == [FIRST, FIRST + 1, FIRST + 2]
    assert [r["timestamp"] for r in records] == list(TIMES)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (1_324, 10, 984, True)


@every_codec
def test_what_is_sent_is_not_written_to(codec: Codec) -> None:
    made = sent(codec)
    buffer = bytearray(made)
    validated(memoryview(buffer), append_time=True)
    assert buffer == made


@every_codec
def test_with_log_append_time_a_kept_batch_has_the_time_of_its_append(codec: Codec) -> None:
    made = sent(codec, rows(times=[1_234] * 3))
    result = validated(made, append_time=True)
    header, records = appended(result)
    assert len(result.records) == len(made)
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 1_234, NOW)
    assert [r["timestamp"] for r in records] == [NOW] * 3
    assert (result.max_timestamp, result.is_rebuilt) == (NOW, False)


@every_codec
def test_a_greatest_timestamp_that_the_header_lies_about_is_corrected(codec: Codec) -> None:
    result = validated(changed(sent(codec), max_timestamp=NOW + 999))
    assert appended(result)[0].max_timestamp == result.max_timestamp == NOW + 1


def test_attributes_that_mean_nothing_are_dropped_only_where_they_are_written_anew() -> None:
    unknown = changed(sent(), attributes=0xFF80)
    assert read_batch_header(validated(unknown).records).attributes == 0xFF80
    anew = read_batch_header(validated(unknown, append_time=True).records).attributes
    assert anew == APPEND_TIME


def test_a_delete_horizon_survives() -> None:
    made = changed(sent(), attributes=DELETE_HORIZON)
    result = validated(made, append_time=True)
    assert read_batch_header(result.records).attributes == APPEND_TIME | DELETE_HORIZON


def test_a_checksum_stays_as_it_is_where_nothing_under_it_changes() -> None:
    assert read_batch_header(validated(changed(sent(), crc=7)).records).crc == 7


@every_codec
def test_another_level_of_the_same_codec_changes_nothing(codec: Codec) -> None:
    words = [b"some text that is worth compressing " * 9] * 3
    made = sent(codec, rows(words), level={Codec.gzip: 9, Codec.lz4: 17, Codec.zstd: 19}.get(codec))
    low = {Codec.gzip: 1, Codec.lz4: 3, Codec.zstd: 1}.get(codec)
    assert validated(made, target=codec, level=low).records == changed(made, base_offset=FIRST, partition_leader_epoch=40)


@every_target
def test_a_marker_is_not_compressed(target: Codec) -> None:
    marker = write_marker(0, NOW, ControlType.COMMIT, producer_id=23_423, producer_epoch=5, coordinator_epoch=0)
    result = validated(marker, target=target, origin=Origin.COORDINATOR)
    assert result.records == changed(marker, base_offset=FIRST, partition_leader_epoch=40)


@every_codec
def test_a_batch_without_records_that_no_client_wrote_is_kept(codec: Codec) -> None:
    made = batch(attributes=codec, count=0, last_delta=4)
    result = validated(made, origin=Origin.COORDINATOR)
    assert read_batch_header(result.records).last_offset == result.last_offset == FIRST - 1
    assert result.max_timestamp == -1


def test_offsets_within_an_uncompressed_batch_are_not_looked_at() -> None:
    made = batch(record(0), record(0), base_timestamp=NOW, max_timestamp=NOW)
    assert not validated(made).is_rebuilt


# --- rebuilt ---


@every_codec
@every_target
def test_another_codec_means_another_batch_of_the_same_records(codec: Codec, target: Codec) -> None:
    headers = [(b"a", None), (b"", b""), ("ä".encode(), b"1")]
    made = sent(codec, rows(headers=headers), **PRODUCER)
    result = validated(made, target=target)
    header, records = appended(result)
    assert result.is_rebuilt == (codec != target)
    assert result.records_rebuilt == (3 if codec != target else 0)
    assert (result.max_timestamp, result.last_offset) == (NOW + 1, FIRST + 2)
    assert (header.codec, header.base_timestamp, header.max_timestamp) == (target, NOW - 1, NOW + 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (1_324, 10, 984, True)
    assert (header.partition_leader_epoch, header.timestamp_type) == (40, TimestampType.CREATE_TIME)
    expected = [r | {"offset": r["offset"] + FIRST} for r in rows(headers=headers).to_pylist()]
    assert records == expected


def test_a_rebuilt_batch_is_compressed_at_the_topic_s_level() -> None:
    words = [b"%d" % n * n for n in range(300)]
    columns = rows(words, [NOW] * 300)
    for target, level in ((Codec.gzip, 1), (Codec.gzip, 9), (Codec.lz4, 12), (Codec.zstd, 5)):
        made = validated(sent(Codec.snappy, columns), target=target, level=level)
        assert made.records[BATCH_HEADER_BYTES:] == compress(target, sent(Codec.none, columns)[BATCH_HEADER_BYTES:], level)


@every_codec
def test_with_log_append_time_a_rebuilt_batch_keeps_the_records_own_times_under_it(codec: Codec) -> None:
    target = Codec.gzip if codec != Codec.gzip else Codec.none
    result = validated(sent(codec, rows(times=[5, 9, 7])), target=target, append_time=True)
    header, records = appended(result)
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 5, NOW)
    assert [r["timestamp"] for r in records] == [NOW] * 3
    assert (
        inflate(header.codec, result.records[BATCH_HEADER_BYTES:]) == sent(Codec.none, rows(times=[5, 9, 7]))[BATCH_HEADER_BYTES:]
    )
    assert result.max_timestamp == NOW


def test_a_compressed_batch_with_wrong_inner_offsets_is_rebuilt_where_it_would_be_anyway() -> None:
    made = batch(record(0), record(7), attributes=Codec.gzip, last_delta=1, base_timestamp=NOW, max_timestamp=NOW)
    result = validated(made, target=Codec.none)
    assert [r["offset"] for r in appended(result)[1]] == [FIRST, FIRST + 1]


def test_a_compressed_batch_with_wrong_inner_offsets_is_refused_where_it_would_be_kept() -> None:
    made = batch(record(0), record(7), attributes=Codec.gzip, last_delta=1, base_timestamp=NOW, max_timestamp=NOW)
    with pytest.raises(UnknownServerError):
        validated(made)


def test_a_rebuilt_batch_has_the_shortest_varints_and_one_kind_of_null() -> None:
    loose = b"\0" + b"\x80\0" + b"\x80\x80\0" + b"\x05" + b"\x82\x80\0" + b"v" + b"\x80\0"
    made = batch(field(loose), base_timestamp=NOW, max_timestamp=NOW)
    result = validated(made, target=Codec.gzip)
    assert inflate(Codec.gzip, result.records[BATCH_HEADER_BYTES:]) == record(key=None, value=b"v")


def test_a_header_s_name_that_is_not_text_becomes_text_where_the_batch_is_rebuilt() -> None:
    columns = rows(headers=[(b"\xff\xfen", b"\xff"), (b"fine", None)])
    assert [h["key"] for h in appended(validated(sent(Codec.none, columns)))[1][0]["headers"]] == [b"\xff\xfen", b"fine"]
    rebuilt = appended(validated(sent(Codec.none, columns), target=Codec.lz4))[1][0]["headers"]
    assert rebuilt == [{"key": "\ufffd\ufffdn".encode(), "value": b"\xff"}, {"key": b"fine", "value": None}]


def test_a_compressed_marker_that_is_rebuilt_is_no_marker() -> None:
    """So does Kafka; no coordinator compresses its markers."""
    made = sent(Codec.gzip, rows([b"\0\0\0\0\0\5"], [NOW], key=b"\0\0\0\1"), is_control=True)
    result = validated(made, target=Codec.none, origin=Origin.COORDINATOR)
    assert not appended(result)[0].is_control


def test_a_batch_without_records_that_is_rebuilt_is_nothing() -> None:
    made = batch(attributes=Codec.gzip, count=0, last_delta=4)
    result = validated(made, target=Codec.lz4, origin=Origin.COORDINATOR)
    assert (result.records, result.max_timestamp, result.last_offset) == (b"", -1, FIRST - 1)
    with pytest.raises(UnknownServerError):
        validated(made, target=Codec.lz4, origin=Origin.COORDINATOR, append_time=True)


UNBUILDABLE = {
    "a negative timestamp": {"base_timestamp": -5},
    "a transaction without a producer": {"attributes": TRANSACTIONAL},
    "a producer without an epoch": {"producer_id": 4, "base_sequence": 0},
}


@pytest.mark.parametrize("fault", UNBUILDABLE)
def test_what_kafka_cannot_build_a_batch_of_it_keeps_or_refuses(fault: str) -> None:
    made = changed(sent(Codec.none, rows([b"v"], [0])), **UNBUILDABLE[fault])
    assert not validated(made, before=2 * NOW).is_rebuilt
    with pytest.raises(UnknownServerError):
        validated(made, before=2 * NOW, target=Codec.gzip)


def test_a_log_s_settings_are_the_rules() -> None:
    assert rules_of(read_config({})) == Rules(None, None, False, False, 2**63 - 1, 3_600_000)
    settings = {
        "compression.type": "zstd",
        "compression.zstd.level": "7",
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": "5",
        "message.timestamp.after.max.ms": "6",
    }
    assert rules_of(read_config(settings)) == Rules(Codec.zstd, 7, True, True, 5, 6)
    assert rules_of(read_config({"compression.type": "uncompressed"})).codec == Codec.none
    assert rules_of(read_config({"compression.type": "snappy"})).level is None


# --- older messages ---

OLD_CODECS = (Codec.none, Codec.gzip, Codec.snappy, Codec.lz4)
every_magic = pytest.mark.parametrize("magic", [0, 1])
every_old_codec = pytest.mark.parametrize("codec", OLD_CODECS)


def of_old(magic: int, codec: Codec = Codec.none, *, keys: Any = (b"k",) * 3, times: Any = TIMES, **fields: Any) -> bytes:
    """Three messages as a client of old sent them: one behind the other, or compressed in one. `fields` are the outer one's."""
    made = [
        message(magic, word, key=key, offset=n, timestamp=time, **({} if codec else fields))
        for n, (word, key, time) in enumerate(zip(WORDS, keys, times, strict=True))
    ]
    return wrapper(magic, codec, *made, **{"offset": 2, "timestamp": max(times)} | fields) if codec else b"".join(made)


@every_magic
@every_old_codec
@every_target
def test_older_messages_become_one_batch_of_the_topic_s_codec(magic: int, codec: Codec, target: Codec) -> None:
    result = validated(of_old(magic, codec, keys=(b"k", b"", None)), target=target)
    header, records = appended(result)
    times = TIMES if magic else [-1] * 3
    assert [(r["offset"], r["timestamp"], r["key"], r["value"], r["headers"]) for r in records] == [
        (FIRST + n, time, key, word, []) for n, (time, key, word) in enumerate(zip(times, (b"k", b"", None), WORDS, strict=True))
    ]
    assert (header.codec, header.timestamp_type, header.partition_leader_epoch) == (target, TimestampType.CREATE_TIME, 40)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (-1, -1, -1, False)
    assert header.max_timestamp == result.max_timestamp == (NOW + 1 if magic else -1)
    assert (result.last_offset, result.records_rebuilt, result.is_rebuilt) == (FIRST + 2, 3, True)


@every_old_codec
def test_older_messages_of_a_topic_that_keeps_the_producer_s_codec_keep_theirs(codec: Codec) -> None:
    assert appended(validated(of_old(1, codec)))[0].codec == codec


@every_magic
@every_old_codec
def test_with_log_append_time_older_messages_have_the_time_of_their_append(magic: int, codec: Codec) -> None:
    result = validated(of_old(magic, codec, times=[1_234] * 3), append_time=True)
    header, records = appended(result)
    assert (header.timestamp_type, header.max_timestamp, result.max_timestamp) == (TimestampType.LOG_APPEND_TIME, NOW, NOW)
    assert [r["timestamp"] for r in records] == [NOW] * 3


@every_magic
@every_old_codec
def test_a_compacted_topic_takes_no_older_message_without_a_key(magic: int, codec: Codec) -> None:
    with pytest.raises(InvalidRecord) as caught:
        validated(of_old(magic, codec, keys=(b"k", None, None)), compacted=True)
    # A message that is not compressed is a batch of its own, and the first that is wrong is all that is said.
    assert [e.row for e in caught.value.record_errors] == ([1, 2] if codec else [0])


@every_old_codec
@pytest.mark.parametrize("time", [NOW - 1_001, NOW + 1_001, 0, 2**62])
def test_a_time_of_an_older_message_too_far_from_the_append_is_refused(codec: Codec, time: int) -> None:
    with pytest.raises(InvalidTimestamp) as caught:
        validated(of_old(1, codec, times=[NOW, time, NOW]))
    assert [e.row for e in caught.value.record_errors] == ([1] if codec else [0])
    assert appended(validated(of_old(0, codec, times=[NOW, time, NOW])))[0].max_timestamp == -1


@every_old_codec
def test_a_client_of_old_does_not_set_the_time_of_its_append(codec: Codec) -> None:
    with pytest.raises(InvalidTimestamp, match="time of its append"):
        validated(of_old(1, codec, attributes=APPEND_TIME), append_time=True)
    assert validated(of_old(0, codec, attributes=APPEND_TIME), append_time=True).is_rebuilt


def test_messages_in_one_of_log_append_time_have_its_time() -> None:
    made = of_old(1, Codec.gzip, times=[5, 6, 7], attributes=APPEND_TIME, timestamp=NOW)
    assert [r["timestamp"] for r in appended(validated(made))[1]] == [NOW] * 3


def test_a_compressed_older_message_comes_alone() -> None:
    with pytest.raises(InvalidRecord, match="more than one batch"):
        validated(of_old(1, Codec.gzip) + of_old(1, Codec.gzip))
    with pytest.raises(InvalidRecord, match="more than one batch"):
        validated(of_old(1) + of_old(1, Codec.gzip), source=Codec.gzip)


@pytest.mark.parametrize("first", [0, 1])
def test_messages_of_two_magics_do_not_come_together(first: int) -> None:
    for other in {0, 1, 2} - {first}:
        with pytest.raises(InvalidRecord, match=f"magic {other} behind one of magic {first}"):
            validated(of_old(first) + (sent() if other == 2 else of_old(other)))
        if other < 2:
            with pytest.raises(InvalidRecord) as caught:
                validated(
                    wrapper(first, Codec.gzip, message(first), message(other, offset=1), offset=1, timestamp=NOW), before=NOW
                )
            assert [e.row for e in caught.value.record_errors] == [1]


def test_a_wrong_time_of_an_older_message_outweighs_another_magic() -> None:
    made = wrapper(1, Codec.gzip, message(0), message(1, offset=1, timestamp=1), offset=1, timestamp=NOW)
    with pytest.raises(InvalidTimestamp) as caught:
        validated(made)
    assert [e.row for e in caught.value.record_errors] == [0, 1]


@every_magic
@pytest.mark.parametrize("codec", OLD_CODECS[1:])
def test_a_message_in_a_compressed_one_has_its_checksum(magic: int, codec: Codec) -> None:
    made = wrapper(magic, codec, message(magic), message(magic, offset=1, crc_off_by=1), offset=1)
    with pytest.raises(CorruptMessage, match="CRC-32"):
        validated(made, before=NOW)


@every_magic
def test_offsets_within_a_compressed_older_message_are_given_anew_whatever_they_are(magic: int) -> None:
    made = wrapper(magic, Codec.gzip, *(message(magic, offset=n, timestamp=NOW) for n in (0, 0, 7)), offset=10)
    assert [r["offset"] for r in appended(validated(made))[1]] == [FIRST, FIRST + 1, FIRST + 2]


UNREADABLE = {
    "a null value": (lambda magic: message(magic, None, attributes=Codec.gzip), InvalidRecord),
    "codec zstd": (lambda magic: wrapper(magic, Codec.zstd, message(magic)), InvalidRecord),
    "no codec of Kafka's": (lambda magic: message(magic, attributes=5), UnknownServerError),
    "no inner messages": (lambda magic: wrapper(magic, Codec.gzip), InvalidRecord),
    "no gzip": (lambda magic: wrapper(magic, Codec.gzip, section=b"value"), UnknownServerError),
    "nothing that inflates": (lambda magic: wrapper(magic, Codec.gzip, section=b""), UnknownServerError),
    "a wrapper within": (lambda magic: wrapper(magic, Codec.gzip, wrapper(magic, Codec.gzip, message(magic))), InvalidRecord),
    "no codec of Kafka's within": (lambda magic: wrapper(magic, Codec.gzip, message(magic, attributes=5)), UnknownServerError),
    "an inner message that is too small": (lambda magic: wrapper(magic, Codec.gzip, bytes(26)), CorruptMessage),
}


@every_magic
@pytest.mark.parametrize("fault", UNREADABLE)
def test_a_compressed_older_message_that_cannot_be_read_is_refused(fault: str, magic: int) -> None:
    made, error = UNREADABLE[fault]
    with pytest.raises(error):
        validated(made(magic), before=NOW, source=Codec.gzip)


def test_a_compressed_message_of_magic_1_below_its_last_relative_offset_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="below its last"):
        validated(of_old(1, Codec.gzip, offset=1))


@every_magic
@every_old_codec
def test_a_key_longer_than_its_message_is_refused(magic: int, codec: Codec) -> None:
    bad = bytearray(message(magic, key=b"key", timestamp=NOW))
    bad[26 if magic else 18] = 1
    bad[12:16] = crc32(bytes(bad[16:])).to_bytes(4, "big")
    for compacted in (True, False):
        with pytest.raises(UnknownServerError, match="longer than what is left"):
            validated(wrapper(magic, codec, bytes(bad), timestamp=NOW) if codec else bytes(bad), compacted=compacted)


@every_old_codec
def test_a_negative_time_of_an_older_message_is_refused(codec: Codec) -> None:
    with pytest.raises(UnknownServerError, match="timestamp"):
        validated(of_old(1, codec, times=[NOW, -5, NOW]), before=2 * NOW)


# --- refused: the request ---


@every_codec
@every_target
def test_a_request_has_one_batch(codec: Codec, target: Codec) -> None:
    with pytest.raises(InvalidRecord, match="more than one batch"):
        validated(sent(codec) + sent(codec), target=target)


def test_a_request_without_a_whole_batch_is_refused() -> None:
    for cut in (0, 5, 11, 16, 60, len(sent()) - 1):
        with pytest.raises(InvalidRecord, match="without a whole batch"):
            validated(sent()[:cut])


def test_bytes_that_are_no_batch_are_corrupt() -> None:
    for bad in (changed(sent(), batch_length=13), changed(sent(), batch_length=-1), changed(sent(), magic=3)):
        with pytest.raises(CorruptMessage):
            validated(bad)
    with pytest.raises(CorruptMessage, match="header"):
        validated(changed(sent(), batch_length=48)[:60])


def test_what_is_left_over_after_the_batch_is_kept_with_it() -> None:
    assert validated(sent() + b"rest").records.endswith(b"rest")


# --- refused: the header ---


@every_codec
@every_target
def test_a_client_s_batch_has_records(codec: Codec, target: Codec) -> None:
    made = batch(section=b"", count=0, last_delta=5, base_timestamp=-1, max_timestamp=NOW)
    with pytest.raises(InvalidRecord):
        validated(made, source=codec, target=target)


def test_a_client_s_batch_that_counts_right_is_accepted() -> None:
    validated(changed(sent(), last_offset_delta=2, records_count=3))


@pytest.mark.parametrize(("last_delta", "count"), [(0, 3), (15, 3), (-3, 3), (2, 0), (-1, 0), (2, -3)])
def test_a_client_s_batch_spans_as_many_offsets_as_it_has_records(last_delta: int, count: int) -> None:
    with pytest.raises(InvalidRecord, match=f"claims {count} records"):
        validated(changed(sent(), last_offset_delta=last_delta, records_count=count))


@every_codec
@pytest.mark.parametrize(("last_delta", "count"), [(5, 6), (1, 2)])
def test_a_batch_has_as_many_records_as_it_claims(last_delta: int, count: int, codec: Codec) -> None:
    made = changed(sent(codec), last_offset_delta=last_delta, records_count=count)
    for target in (codec, Codec.gzip, Codec.none):
        with pytest.raises(InvalidRecord, match=f"record 2 of {count}|record 3 of {count}"):
            validated(made, target=target)


def test_records_that_a_batch_claims_to_lack_are_refused_whoever_wrote_them() -> None:
    with pytest.raises(InvalidRecord, match="claims -1 records"):
        validated(changed(sent(), records_count=-1), origin=Origin.COORDINATOR)


def test_clients_write_no_control_batches() -> None:
    marker = write_marker(0, NOW, ControlType.ABORT, producer_id=23_423, producer_epoch=5, coordinator_epoch=0)
    with pytest.raises(InvalidRecord, match="control"):
        validated(marker)
    validated(marker, origin=Origin.COORDINATOR)


@every_codec
@every_target
def test_a_producer_s_batch_has_a_sequence_number(codec: Codec, target: Codec) -> None:
    made = changed(sent(codec, producer_id=1_234, producer_epoch=0, base_sequence=0), base_sequence=-2)
    with pytest.raises(InvalidRecord, match="sequence number -2"):
        validated(made, target=target)


def test_a_coordinator_is_held_to_no_rule_for_clients() -> None:
    made = changed(sent(), producer_id=4, base_sequence=-1, last_offset_delta=9)
    assert validated(made, origin=Origin.COORDINATOR).last_offset == FIRST + 2


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_refused(codec: int) -> None:
    with pytest.raises(UnknownServerError, match=f"codec {codec}"):
        validated(changed(sent(), attributes=codec))
    with pytest.raises(UnknownServerError, match=f"codec {codec}"):
        validated(changed(sent(), attributes=codec), source=Codec.none)


# --- refused: the records ---


@every_codec
@every_target
def test_a_compacted_topic_takes_no_record_without_a_key(codec: Codec, target: Codec) -> None:
    made = sent(codec, rows(times=[-1, -1, -1], key=None))
    with pytest.raises(InvalidRecord) as caught:
        validated(made, target=target, compacted=True)
    assert [e.row for e in caught.value.record_errors] == [0, 1, 2]
    assert all("key" in e.problem for e in caught.value.record_errors)
    validated(made, target=target)


@every_codec
@every_target
@pytest.mark.parametrize("time", [NOW - 1_001, NOW + 1_001, 0, 2**62])
def test_a_time_too_far_from_the_append_is_refused_with_the_record_s_place(codec: Codec, target: Codec, time: int) -> None:
    with pytest.raises(InvalidTimestamp) as caught:
        validated(sent(codec, rows(times=[NOW, time, time])), target=target)
    assert [e.row for e in caught.value.record_errors] == [1, 2]
    assert f"timestamp {time}, outside [{NOW - 1_000}, {NOW + 1_000}]" in caught.value.record_errors[0].problem


@every_codec
def test_a_time_as_far_from_the_append_as_may_be_is_accepted(codec: Codec) -> None:
    made = sent(codec, rows(times=[NOW - 1_000, NOW + 1_000, -1]))
    assert validated(made).max_timestamp == NOW + 1_000


def test_a_day_back_and_an_hour_ahead() -> None:
    hour, minute = 3_600_000, 60_000
    about = {"before": 24 * hour, "after": hour}
    for time in (NOW - 24 * hour - 5 * minute, NOW + hour + 5 * minute):
        with pytest.raises(InvalidTimestamp, match="outside"):
            validated(sent(Codec.gzip, rows(times=[time] * 3)), **about)
    for time in (NOW - 24 * hour + 5 * minute, NOW + hour - 5 * minute):
        validated(sent(Codec.gzip, rows(times=[time] * 3)), **about)


def test_times_are_not_checked_where_the_log_sets_them() -> None:
    validated(sent(Codec.none, rows(times=[0, 1, 2])), append_time=True)


@every_codec
def test_a_producer_does_not_set_the_time_of_its_append(codec: Codec) -> None:
    made = sent(codec, append_time_ms=NOW)
    with pytest.raises(InvalidTimestamp) as caught:
        validated(made, append_time=True)
    assert [e.row for e in caught.value.record_errors] == [0, 1, 2]
    # Where records have times of their own, Kafka looks only at how far that one time is off.
    assert appended(validated(made))[0].timestamp_type == TimestampType.CREATE_TIME
    with pytest.raises(InvalidTimestamp):
        validated(sent(codec, append_time_ms=-1))


def test_a_wrong_time_outweighs_a_missing_key() -> None:
    columns = rows(times=[NOW, 0, NOW], key=None).set_column(2, "key", pa.array([None, b"k", None], pa.binary()))
    with pytest.raises(InvalidTimestamp) as caught:
        validated(sent(Codec.none, columns), compacted=True)
    assert [e.row for e in caught.value.record_errors] == [0, 1, 2]


def test_the_message_shows_three_records_at_most() -> None:
    with pytest.raises(InvalidRecord, match="20 records are refused") as caught:
        validated(sent(Codec.none, rows([b""] * 20, [NOW] * 20, key=None)), compacted=True)
    assert len(caught.value.record_errors) == 20
    assert str(caught.value).count("has no key") == 3


def headless(count: bytes) -> bytes:
    return field(b"\0\0\0\1\1" + count)


LIES = {
    "a record past the batch": batch(b"\x7e\0\0\0\1\1\0", last_delta=0),
    "a record of negative length": batch(b"\1\0\0\0\1\1\0", last_delta=0),
    "a record of no bytes": batch(b"\0", b"\0\0\0\1\1\0", last_delta=1),
    "a length of 6 bytes": batch(b"\x8c\x80\x80\x80\x80\0" + body(), last_delta=0),
    "a time of 11 bytes": batch(field(b"\0" + b"\x80" * 10 + b"\0" + b"\0\1\1\0"), last_delta=0),
    "a key past the record": batch(field(b"\0\0\0\x08abc"), last_delta=0),
    "a value past the record": batch(field(b"\0\0\0\1\x08abc"), last_delta=0),
    "more headers than bytes": batch(headless(b"\x7e"), last_delta=0),
    "a negative number of headers": batch(headless(b"\1"), last_delta=0),
    "a header without a name": batch(headless(b"\2\1\0"), last_delta=0),
    "a header's name past the record": batch(headless(b"\2\x7e\0"), last_delta=0),
    "a header's value past the record": batch(headless(b"\2\0\x7e"), last_delta=0),
    "bytes after the headers": batch(headless(b"\0\0"), last_delta=0),
    "bytes after the records": batch(record(), section=record() + b"\0", count=1, last_delta=0),
}


@every_codec
@pytest.mark.parametrize("lie", LIES)
def test_records_that_lie_about_their_form_are_refused(lie: str, codec: Codec) -> None:
    header = read_batch_header(LIES[lie])
    section = compress(codec, LIES[lie][BATCH_HEADER_BYTES:])
    made = batch(section=section, attributes=codec, count=header.records_count, last_delta=header.records_count - 1)
    for target in (codec, Codec.gzip, Codec.none):
        with pytest.raises(InvalidRecord, match=r"^record"):
            validated(made, target=target, append_time=True)


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_section_that_does_not_inflate_is_refused(codec: Codec) -> None:
    section = compress(codec, record() * 9)
    for bad in (section[:-1], section[: len(section) // 2], b"x" * 40):
        with pytest.raises(UnknownServerError):
            validated(batch(section=bad, attributes=codec, count=9, last_delta=8))


def test_an_lz4_frame_of_linked_blocks_is_refused_since_kafka_does_not_read_it() -> None:
    import lz4.frame

    values = [bytes([n]) * 30_000 for n in range(9)]
    columns = rows(values, [NOW] * 9)
    section = lz4.frame.compress(sent(Codec.none, columns)[BATCH_HEADER_BYTES:], block_linked=True, block_size=4)
    made = batch(section=section, attributes=Codec.lz4, count=9, last_delta=8, base_timestamp=NOW, max_timestamp=NOW)
    with pytest.raises(UnknownServerError, match="lz4"):
        validated(made)


# --- properties ---


binary = st.one_of(st.none(), st.binary(max_size=40))
headers = st.lists(st.tuples(st.text(max_size=6).map(str.encode), binary), max_size=3)
sendable = st.lists(st.tuples(st.integers(-1_000, 1_000), binary, binary, headers), min_size=1, max_size=12)


@settings(deadline=None, max_examples=100)
@given(made=sendable, codec=st.sampled_from(Codec), target=st.sampled_from([None, *Codec]), first=st.integers(0, 2**60))
def test_whatever_is_sent_is_appended_record_for_record(made: Any, codec: Codec, target: Codec | None, first: int) -> None:
    records = [
        {"offset": n, "timestamp": NOW + t, "key": k, "value": v, "headers": [{"key": name, "value": data} for name, data in h]}
        for n, (t, k, v, h) in enumerate(made)
    ]
    result = validated(sent(codec, pa.RecordBatch.from_pylist(records, schema=RECORDS)), target=target, first=first)
    assert appended(result)[1] == [r | {"offset": r["offset"] + first} for r in records]
    assert result.max_timestamp == max(r["timestamp"] for r in records)
    assert result.last_offset == first + len(records) - 1


@settings(deadline=None, max_examples=300)
@given(data=st.data(), codec=st.sampled_from(Codec), target=st.sampled_from([None, *Codec]))
def test_a_byte_that_is_wrong_is_refused_or_makes_another_sound_batch(data: Any, codec: Codec, target: Codec | None) -> None:
    made = bytearray(sent(codec, rows(headers=[(b"name", b"value")]), **PRODUCER))
    made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    try:
        result = validated(bytes(made), target=target, source=codec)
    except Refused:
        return
    batches, _ = scan(result.records)
    assert len(batches) == 1
