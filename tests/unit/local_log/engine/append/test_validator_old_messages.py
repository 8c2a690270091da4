"""Messages of magic 0 and 1 that a leader makes a batch of, and those that it refuses."""

from typing import Any

import pytest
from hand_made import APPEND_TIME, message, wrapper
from validated_batches import FIRST, NOW, TIMES, WORDS, appended, every_target, sent, validated

from local_log.engine.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, UnknownServerError
from local_log.formats.checksum import crc32
from local_log.formats.record import Codec, TimestampType

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
