"""The frames of appends to one partition, which most appends are, read and written by a few calls.

They are those of `reading` and `writing`, which any other frame is left to:

    request body   transactional id null | acks int16 | timeout int32 | topics 1 | name or id
                   partitions 1 | index int32 | records | tagged fields none, three times
    response body  topics 1 | name or id | partitions 1 | index int32 | error int16 0 | base offset, time, log start int64
                   record errors 0 | message null | tagged fields none, twice | throttle time int32 | tagged fields none

Source: Kafka's ProduceRequest and ProduceResponse, versions with tagged fields (KIP-482).
"""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from struct import Struct
from typing import Final, NamedTuple

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

VERSIONS: Final = range(9, 14)
_IDS_SINCE: Final = 13
_ID_BYTES, _SHORT_MAX = 16, 0x7F
_SHIFT_MAX: Final = 28
_SIZE_BYTES: Final = 4
_ONE: Final = 2
"""The size of an array of one, as it is written."""
_NOBODY: Final = LeaderIdAndEpoch()
_NO_TAGS: Final = b"\0\0\0"
_ASKED, _PARTITION = Struct(">BhiB"), Struct(">Bi")
_BEGIN, _ANSWER = Struct(">iibB"), Struct(">BihqqqBBBBiB")


class OneAppend(NamedTuple):
    """What is asked; `named` is the topic's name or id as it is written."""

    acks: int
    timeout_ms: int
    named: bytes
    number: int
    records: memoryview

    def topic(self, version: int) -> tuple[str, str]:
        """The topic's name and id, of which one is empty."""
        if version >= _IDS_SINCE:
            return "", urlsafe_b64encode(self.named)[:22].decode()
        return self.named[1:].decode("utf-8", "replace"), ZERO_TOPIC_ID


def find_one_append(frame: bytes, pos: int, version: int) -> OneAppend | None:
    """What the request asks whose body is at `pos`; None for another one, also for one that is damaged."""
    try:
        transactional_id, acks, timeout_ms, topics = _ASKED.unpack_from(frame, pos)
        pos += _ASKED.size
        named_size = _ID_BYTES if version >= _IDS_SINCE else frame[pos]
        end = pos + named_size
        partitions, index = _PARTITION.unpack_from(frame, end)
        if transactional_id or topics != _ONE or partitions != _ONE or not 0 < named_size <= _SHORT_MAX:
            return None
        start = end + _PARTITION.size
        size, shift = 0, 0
        while frame[start] > _SHORT_MAX and shift < _SHIFT_MAX:
            size |= (frame[start] & _SHORT_MAX) << shift
            start, shift = start + 1, shift + 7
        size |= frame[start] << shift
    except (IndexError, struct.error):
        return None
    start += 1
    if size < _ONE or start + size - 1 + len(_NO_TAGS) != len(frame) or frame[-len(_NO_TAGS) :] != _NO_TAGS:
        return None
    return OneAppend(acks, timeout_ms, frame[pos:end], index, memoryview(frame)[start : start + size - 1])


def read_one_append(frame: bytes, pos: int, version: int) -> ProduceRequest | None:
    """The same as a message."""
    found = find_one_append(frame, pos, version)
    if found is None:
        return None
    topic = TopicProduceData(*found.topic(version), (PartitionProduceData(found.number, (found.records,)),))
    return ProduceRequest(None, found.acks, found.timeout_ms, (topic,))


def write_one_append(correlation_id: int, version: int, message: ProduceResponse) -> bytes | None:
    """The frame that says where the records of one partition are; None for another answer."""
    if len(message.responses) != 1 or message.node_endpoints:
        return None
    (topic,) = message.responses
    if len(topic.partition_responses) != 1:
        return None
    (one,) = topic.partition_responses
    if one.error_code or one.record_errors or one.error_message is not None or one.current_leader != _NOBODY:
        return None
    if version >= _IDS_SINCE:
        named = urlsafe_b64decode(f"{topic.topic_id}==")
    else:
        name = topic.name.encode()
        if len(name) >= _SHORT_MAX:
            return None
        named = bytes((len(name) + 1,)) + name
    where = one.index, 0, one.base_offset, one.log_append_time_ms, one.log_start_offset
    return answer_frame(correlation_id, named, where, message.throttle_time_ms)


def answer_frame(correlation_id: int, named: bytes, where: tuple[int, int, int, int, int], throttle_ms: int) -> bytes:
    """The frame that says of a topic `where` records are: partition, no error, first offset, time of the append, log start."""
    answer = _ANSWER.pack(_ONE, *where, 1, 0, 0, 0, throttle_ms, 0)
    size = _BEGIN.size - _SIZE_BYTES + len(named) + len(answer)
    return _BEGIN.pack(size, correlation_id, 0, _ONE) + named + answer
