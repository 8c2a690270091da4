"""What of an answer is still to be sent (Kafka's NetworkSend): buffers and ranges of files, in order."""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from local_log.file_range import FileRange, size_of
from local_log.formats.primitives import Buffer

BUFFERS_MAX = 64
"""Buffers that are handed to one system call, which takes 1024 at most."""


class Send:
    """The parts that are left. Ask for the next ones, send some of their bytes, and say how many."""

    __slots__ = ("_parts", "buffered", "left", "size")

    def __init__(self, parts: Iterable[Buffer | FileRange]) -> None:
        self._parts: deque[memoryview | FileRange] = deque()
        self.left = 0
        """Bytes that are still to be sent."""
        self.buffered = 0
        """Bytes of all buffers together, which are in memory for as long as the answer is."""
        for part in parts:
            size = size_of(part)
            if size:
                self._parts.append(part if isinstance(part, FileRange) else memoryview(part))
                self.left += size
                self.buffered += 0 if isinstance(part, FileRange) else size
        self.size = self.left
        """Bytes of the whole answer."""

    def whole(self, bytes_max: int) -> list[Buffer] | None:
        """All that is left, with what is in files read; None if that is more, in too many parts, or in a file that ends sooner.

        Raises Conflict if a log was truncated since its range was found, and Unreadable.
        """
        if self.left > bytes_max or len(self._parts) > BUFFERS_MAX:
            return None
        found: list[Buffer] = [part.read() if isinstance(part, FileRange) else part for part in self._parts]
        return found if sum(map(len, found)) == self.left else None

    def next_file(self, bytes_max: int) -> FileRange | None:
        """The range of a file that is next, of at most so many bytes; None if a buffer is next, or nothing."""
        part = self._parts[0] if self._parts else None
        if not isinstance(part, FileRange):
            return None
        return part.first(bytes_max)

    def next_mapped(self, bytes_max: int) -> tuple[list[memoryview], list[FileRange]] | None:
        """What is next, of at most `bytes_max` bytes, with what is in files mapped; and which ranges of files these are.

        None where there is no file, or one that cannot be mapped. The bytes are for a system call: see `OpenedFile.mapped`.
        """
        found: list[memoryview] = []
        files: list[FileRange] = []
        for part in islice(self._parts, BUFFERS_MAX):
            if bytes_max <= 0:
                break
            if isinstance(part, FileRange):
                file = part.first(bytes_max)
                mapped = file.mapped()
                if mapped is None:
                    return None
                files.append(file)
            else:
                mapped = part[:bytes_max]
            found.append(mapped)
            bytes_max -= len(mapped)
        return (found, files) if files else None

    def next_buffers(self, bytes_max: int) -> list[memoryview]:
        """The buffers that are next, up to the next range of a file, together of at most so many bytes."""
        found: list[memoryview] = []
        for part in islice(self._parts, BUFFERS_MAX):
            if isinstance(part, FileRange) or not bytes_max:
                break
            found.append(part[:bytes_max])
            bytes_max -= len(found[-1])
        return found

    def advance(self, count: int) -> None:
        """So many bytes are sent."""
        assert 0 <= count <= self.left
        self.left -= count
        while count:
            part = self._parts.popleft()
            size = size_of(part)
            if count < size:
                self._parts.appendleft(part.after(count) if isinstance(part, FileRange) else part[count:])
                return
            count -= size
