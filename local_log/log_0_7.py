"""Reads a partition's log of Kafka 0.7. Its segments are named by the position of their first byte.

There are no indexes: an offset is a byte position. Source: Kafka 0.7's design page, its classes Log and FileMessageSet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import pyarrow as pa

from local_log.disk import Disk
from local_log.errors import Corrupt, OffsetOutOfRange, placed
from local_log.formats.filenames import parse_position_file, position_file
from local_log.formats.messages.kafka_0_7 import Message, decode, scan
from local_log.formats.primitives import INT32_MAX

LATEST_TIME, EARLIEST_TIME = -1, -2
SPAN_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """Whole messages of `file` from byte `position` on. Their first byte has `offset` in the log."""

    file: str
    position: int
    offset: int
    messages: tuple[Message, ...]

    @property
    def next_offset(self) -> int:
        """The offset after the last message, where the next read starts."""
        return self.offset + self.messages[-1].next_position

    def records(self) -> Iterator[pa.RecordBatch]:
        """The records (see `kafka_0_7.decode`). Raises Corrupt with the file and the position."""
        with placed(self.file, self.position):
            yield from decode(self.messages, self.offset)


@dataclass(frozen=True, slots=True)
class Segment07:
    """A segment: its `path`, the offset of its first byte, and its size in bytes."""

    path: str
    start: int
    size: int

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.start + self.size


@dataclass(frozen=True)
class Log07:
    """The log in `folder`, as of the listing of the folder."""

    disk: Disk
    folder: str
    segments: tuple[Segment07, ...]

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self.segments[0].start if self.segments else 0

    @cached_property
    def log_end_offset(self) -> int:
        """The offset after the last valid message. Kafka's recovery truncates what follows it in the newest segment."""
        if not self.segments:
            return 0
        newest = self.segments[-1]
        end = newest.start
        try:
            for span in self._spans(newest, newest.start, newest.end):
                for message in span.messages:
                    if not message.is_valid:
                        return end
                    end = span.offset + message.next_position
        except Corrupt:
            return end
        return end

    def read(self, offset: int, bytes_max: int) -> bytes:
        """The bytes that a fetch of `bytes_max` returns: from `offset` on, of one segment; the last message may be incomplete.

        Raises OffsetOutOfRange.
        """
        segment = self._segment_of(offset)
        if segment is None:
            return b""
        end = min(offset + bytes_max, segment.end, self.log_end_offset)
        return self.disk.read(segment.path, offset - segment.start, end - segment.start)

    def spans(self, offset: int) -> Iterator[MessageSpan]:
        """The messages from `offset` on, which must be the start of one. Raises OffsetOutOfRange, Corrupt, NotFound."""
        if self._segment_of(offset) is None:
            return
        for segment in self.segments:
            yield from self._spans(segment, max(offset, segment.start), min(segment.end, self.log_end_offset))

    def records(self, offset: int) -> Iterator[pa.RecordBatch]:
        """The records from `offset` on (see `kafka_0_7.decode`). Raises as `spans` does."""
        for span in self.spans(offset):
            yield from span.records()

    def offsets_before(self, time_ms: int, count: int, now_ms: int) -> tuple[int, ...]:
        """At most `count` start offsets of segments, descending, that were last modified at or before `time_ms`.

        LATEST_TIME puts the end of the log first; EARLIEST_TIME gives only its start. The end of the log counts as modified at
        `now_ms`. Raises NotFound. (SimpleConsumer.getOffsetsBefore)
        """
        known = [(segment.start, self.disk.modified_ms(segment.path)) for segment in self.segments]
        if not known:
            known = [(0, now_ms)] if time_ms in (LATEST_TIME, EARLIEST_TIME) else []
        elif self.log_end_offset > self.segments[-1].start:
            known.append((self.log_end_offset, now_ms))
        if time_ms == EARLIEST_TIME:
            last = 1
        elif time_ms == LATEST_TIME:
            last = len(known)
        else:
            last = max((n for n, (_, changed_ms) in enumerate(known, 1) if changed_ms <= time_ms), default=0)
        return tuple(offset for offset, _ in known[:last])[::-1][: max(0, count)]

    def _segment_of(self, offset: int) -> Segment07 | None:
        """The segment that contains `offset`, None for the end of the log."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(self.folder, offset, self.log_start_offset, self.log_end_offset)
        return next((s for s in self.segments if s.start <= offset < min(s.end, self.log_end_offset)), None)

    def _spans(self, segment: Segment07, start: int, end: int) -> Iterator[MessageSpan]:
        """The messages of `[start, end)`. Only the newest segment may end in an incomplete message; elsewhere that is Corrupt."""
        want = SPAN_BYTES
        while start < end:
            position = start - segment.start
            buffer = self.disk.read(segment.path, position, min(end - segment.start, position + want))
            with placed(segment.path, position):
                messages, stop = scan(buffer)
            if messages:
                yield MessageSpan(segment.path, position, start, messages)
                start, want = start + stop, SPAN_BYTES
            elif len(buffer) >= want and want < INT32_MAX:
                want = min(want * 4, INT32_MAX)  # one message is larger than the range that was read
            elif segment is self.segments[-1]:
                return
            else:
                raise Corrupt(
                    f"the last {end - start} bytes of a full segment are no message", file=segment.path, position=position
                )


def open_log_0_7(disk: Disk, folder: str) -> Log07:
    """Lists a partition's folder. Raises NotFound; Corrupt if a segment does not start where the one before it ends."""
    found = [(start, f"{folder}/{name}") for name in disk.names(folder) if (start := parse_position_file(name)) is not None]
    segments = tuple(Segment07(path, start, disk.size(path)) for start, path in sorted(found))
    for before, after in pairwise(segments):
        if before.end != after.start:
            raise Corrupt(
                f"the segment ends at offset {before.end}, and the next one is {position_file(after.start)}; "
                "restore the files between from a copy",
                file=before.path,
                position=before.size,
            )
    return Log07(disk, folder, segments)
