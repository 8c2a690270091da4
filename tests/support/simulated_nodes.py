"""What a simulated disk is made of: files, folders and changes of names, each with what a crash may leave of it."""

import random  # noqa: TID251  # seeded
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from local_log.file_range import FileState

BLOCK_BYTES = 4096


class Draw:
    """Which of several states is found after the crash: the newest with probability 1 - `lost`, else mostly the oldest."""

    def __init__(self, lost: float, seed: int) -> None:
        self._lost = lost
        self._random = random.Random(seed)

    def index(self, states: int) -> int:
        if states == 1:
            return 0
        drawn = self._random.random()
        if drawn >= self._lost:
            return states - 1
        return 0 if drawn < self._lost * self._lost else self._random.randrange(states)


@dataclass(eq=False)
class File:
    """`sizes` and `blocks` are what was made of the file since the last sync, each with the number of cuts before it."""

    now: bytearray = field(default_factory=bytearray)
    sure: bytes = b""
    modified_ms: int = 0
    cuts: list[int] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    blocks: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    number: int = field(default_factory=count().__next__)
    """Its inode, which no later file is given."""

    def write(self, start: int, data: bytes) -> None:
        if not data:
            return
        if start > len(self.now):
            self.now.extend(bytes(start - len(self.now)))
        end = start + len(data)
        self.now[start:end] = data
        self._note(range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1))

    def resize(self, size: int) -> None:
        if size < len(self.now):
            del self.now[size:]
            self.cuts.append(size)
            self._note(range(size // BLOCK_BYTES, size // BLOCK_BYTES + (size % BLOCK_BYTES > 0)))
        else:
            self.now.extend(bytes(size - len(self.now)))
            self._note(range(0))

    def _note(self, blocks: range) -> None:
        self.sizes.append((len(self.cuts), len(self.now)))
        for block in blocks:
            self.blocks.setdefault(block, []).append((len(self.cuts), _block(self.now, block)))

    def sync(self) -> None:
        self.sure = bytes(self.now)
        self.cuts.clear()
        self.sizes.clear()
        self.blocks.clear()

    def after_crash(self, draw: Draw) -> "File":
        if not self.sizes:  # nothing since the last sync
            return File(bytearray(self.sure), self.sure, self.modified_ms)
        cuts = draw.index(len(self.cuts) + 1)
        sizes = [len(self.sure)] if cuts == 0 else []
        sizes += [size for after, size in self.sizes if after == cuts]
        size = sizes[draw.index(len(sizes))]
        data = bytearray(self.sure[:size].ljust(size, b"\0"))
        for block in range(-(-size // BLOCK_BYTES)):
            start = block * BLOCK_BYTES
            freed = [number for number, cut in enumerate(self.cuts, 1) if cut <= start]
            low = max((number for number in freed if number <= cuts), default=0)
            high = min((number for number in freed if number > cuts), default=len(self.cuts) + 1)
            versions = [b"" if low else _block(self.sure, block)]
            versions += [content for after, content in self.blocks.get(block, []) if low <= after < high]
            data[start : start + BLOCK_BYTES] = versions[draw.index(len(versions))].ljust(BLOCK_BYTES, b"\0")
        del data[size:]
        return File(data, bytes(data), self.modified_ms)


@dataclass(frozen=True, eq=False)
class Opened:
    """An open file, whatever becomes of its name."""

    of: File

    def fileno(self) -> int:
        raise OSError("a file in memory has no descriptor")

    def mapped(self, start: int, end: int) -> None:
        """It cannot be."""

    def read(self, start: int, end: int) -> bytes:
        return bytes(self.of.now[start:end])

    read_large = read

    def state(self) -> FileState:
        return state_of(self.of)


def state_of(file: File) -> FileState:
    return FileState(0, file.number, len(file.now), file.modified_ms * 1_000_000)


def _block(data: bytes | bytearray, block: int) -> bytes:
    return bytes(data[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES])


@dataclass(eq=False)
class Folder:
    """`modified_ms` is when a name in it was last made, changed or removed."""

    now: "dict[str, Node]" = field(default_factory=dict)
    sure: "dict[str, Node]" = field(default_factory=dict)
    modified_ms: int = 0
    number: int = field(default_factory=count().__next__)


Node = File | Folder


@dataclass(frozen=True, eq=False)
class Change:
    """What happened at once to the names of `node`: each is of `node` from now on, or free."""

    node: Node
    names: tuple[tuple[Folder, str, bool], ...]

    @property
    def folder(self) -> Folder:
        """The one whose sync makes it sure: where a file goes to, if it goes to another one."""
        return self.names[-1][0]

    def apply(self, of: Callable[[Folder], dict[str, Node]]) -> None:
        for folder, name, taken in self.names:
            if taken:
                of(folder)[name] = self.node
            elif of(folder).get(name) is self.node:
                del of(folder)[name]
