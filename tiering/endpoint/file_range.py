"""A part of an answer that is a file's own bytes: it is sent from the file, and never read into memory."""

from dataclasses import dataclass, replace
from typing import Protocol


class OpenFile(Protocol):
    """A file that stays open for as long as somebody holds this."""

    def fileno(self) -> int:
        """Its descriptor."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """`size` bytes from `position` on."""

    file: OpenFile
    position: int
    size: int

    def __len__(self) -> int:
        return self.size

    def after(self, count: int) -> "FileRange":
        """What is left when the first `count` bytes are sent."""
        return replace(self, position=self.position + count, size=self.size - count)
