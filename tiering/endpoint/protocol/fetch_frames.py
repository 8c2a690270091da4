"""The frames of a client's fetches of one partition, one after the other: what changes between them, and what does not.

    request   API, version | correlation id | client id … | session epoch | … leader epoch | offset | … end
    answer    size | correlation id | … error code | high watermark, last stable and log start offset | … | size | batches | end

Where the fields lie is not said here: the reader and the writers of the messages tell it, for each version.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from struct import Struct
from typing import Final

from local_log.formats.primitives import write_uvarint
from tiering.endpoint.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from tiering.endpoint.protocol.requests import RequestHeader, write_request, write_response

LOG_START_OFFSET_SINCE: Final = 5
_CORRELATION_ID, _EPOCH, _OFFSET = "i", "i", "q"
_INT32: Final = Struct(">i")
_INT64_BYTES: Final = 8
_SAME_WITHOUT_SESSION: Final = 3


@dataclass(frozen=True, slots=True)
class RequestFrames:
    """Frames, without their size, that have the bytes of `same` in the same places.

    `layout` unpacks a frame into these bytes and between them the fields that change: the correlation id, the session's epoch if
    the fetch is one of a session, and the offset.
    """

    layout: Struct
    same: tuple[bytes, ...]

    @property
    def alike(self) -> bytes | None:
        """Such a frame with its size, and zeros where it changes; None for one of a session, where more than one field does."""
        if len(self.same) > _SAME_WITHOUT_SESSION:
            return None
        before, between, after = self.same
        return _INT32.pack(self.layout.size) + before + bytes(_INT32.size) + between + bytes(_INT64_BYTES) + after

    @property
    def offset_at(self) -> int:
        """Where the offset is in `alike`."""
        return 2 * _INT32.size + len(self.same[0]) + len(self.same[1])


def request_frames(frame: bytes, header: RequestHeader, message: FetchRequest) -> RequestFrames | None:
    """Frames like that of a fetch of one partition; None if the fetch was written in an unusual way."""
    written = _written(header, message)
    topic = message.topics[0]
    asked = replace(topic.partitions[0], fetch_offset=~topic.partitions[0].fetch_offset)
    epoch = ~message.session_epoch if message.session_id else message.session_epoch
    fields = (_CORRELATION_ID, _EPOCH, _OFFSET) if message.session_id else (_CORRELATION_ID, _OFFSET)
    other = replace(message, session_epoch=epoch, topics=(replace(topic, partitions=(asked,)),))
    places = _differences(written, _written(replace(header, correlation_id=~header.correlation_id), other))
    if not frame.startswith(written):  # what comes after a request is ignored, and sent by librdkafka
        return None
    layout = _layout(places, fields, len(frame))
    return RequestFrames(layout, layout.unpack(frame)[::2])


class ResponseFrames:
    """Answers to fetches of one partition, of a session or of none, which have no error and some batches."""

    __slots__ = ("_begin", "_end", "_pack", "_size", "is_flexible", "tail")

    def __init__(self, header: RequestHeader, session_id: int, topic: FetchableTopicResponse) -> None:
        written, other = (_answer(header, session_id, topic, offset) for offset in (0, -1))
        (start, end), head = _differences(written[0], other[0])[0], written[0]
        self.tail: tuple[bytes, ...] = tuple(written[2:])
        """What comes after the batches, if anything."""
        self.is_flexible = header.api.is_flexible(header.version)
        """Whether the size of the batches is a varint, to which one is added, instead of an int32."""
        length = 1 if self.is_flexible else _INT32.size
        self._begin, self._end = head[8:start], head[end:-length]
        self._size = len(head) - _INT32.size - self.is_flexible + sum(map(len, self.tail))
        self._pack = Struct(f">ii{len(self._begin)}sqqq{len(self._end)}s{'' if self.is_flexible else 'i'}").pack

    def head(self, correlation_id: int, high_watermark: int, log_start_offset: int, size: int) -> bytes:
        """What comes before so many bytes of batches."""
        watermark, start, end = high_watermark, log_start_offset, self._end
        if not self.is_flexible:
            return self._pack(self._size + size, correlation_id, self._begin, watermark, watermark, start, end, size)
        length = bytearray()
        write_uvarint(length, size + 1)
        whole = self._size + len(length) + size
        return self._pack(whole, correlation_id, self._begin, watermark, watermark, start, end) + length

    def before_size(self, high_watermark: int, log_start_offset: int) -> bytes:
        """What comes before the size of the batches, without the size of the frame and the correlation id, which begin it."""
        return self.head(0, high_watermark, log_start_offset, 0)[: -1 if self.is_flexible else -_INT32.size]


def _written(header: RequestHeader, message: FetchRequest) -> bytes:
    return write_request(header, message)[_INT32.size :]


def _answer(header: RequestHeader, session_id: int, topic: FetchableTopicResponse, offset: int) -> list[bytes]:
    (partition,) = topic.partitions
    sample = PartitionData(
        partition.partition_index,
        high_watermark=offset,
        last_stable_offset=offset,
        log_start_offset=offset,
        aborted_transactions=None,
        records=(b"!",),
    )
    return write_response(header, FetchResponse(session_id=session_id, responses=(replace(topic, partitions=(sample,)),)))


def _differences(one: bytes, other: bytes) -> list[tuple[int, int]]:
    """From where to where two frames of one size are not the same."""
    differ = [a != b for a, b in zip(one, other, strict=True)]
    runs = [list(run) for is_other, run in groupby(range(len(differ)), differ.__getitem__) if is_other]
    return [(run[0], run[-1] + 1) for run in runs]


def _layout(places: Iterable[tuple[int, int]], fields: Iterable[str], size: int) -> Struct:
    layout, position = ">", 0
    for (start, end), field in zip(places, fields, strict=True):
        assert end - start == Struct(">" + field).size
        layout += f"{start - position}s{field}"
        position = end
    return Struct(f"{layout}{size - position}s")
