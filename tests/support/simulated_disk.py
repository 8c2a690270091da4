"""A disk in memory that loses at a crash what a file system may lose.

    bytes   of a file: each block of 4 KiB that was written since the last `sync` is on the device as it was after any of those
            writes, or before them all; the size is any that the file has had since, and where no block went, there are zeros
    cuts    of a file happen in order; once one is on the device, so is the loss of the blocks behind it
    names   in a folder are made, changed and removed in order; at a crash the last changes are lost, back to the last
            `sync_folder` at most

Files and folders lose without regard to each other. The journals of ext4, xfs and btrfs keep more than this: there many a
`sync` makes earlier changes to other files and names sure, too. What holds here holds on each of them.
"""

from collections.abc import Callable
from functools import cache, partial

from simulated_nodes import Change, Draw, File, Folder, Node, Opened

from local_log.disk import Space, Writer
from local_log.errors import NoSuchFile, Unreadable
from local_log.file_range import FileState, OpenedFile
from local_log.formats.primitives import Buffer


class Crashed(Exception):
    """The machine has stopped at this call, and every later one is made to a machine that is off."""


VOLUME_BYTES = 1 << 40
"""It has no end, and files take no room of it."""


class SimulatedDisk:
    """A WritableDisk. `calls` are those that change or sync something; `on_call` is told after each."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.crash_after: int | None = None
        """How many calls there are before the machine stops, at the end of the last of them."""
        self.on_call: Callable[[], None] = lambda: None
        self.now_ms = 0
        self._is_off = False
        self._root = Folder()
        self._unsure: list[Change] = []
        self._folders: dict[str, Folder] = {}
        """What the paths of folders lead to, until one is removed."""

    def after_kill(self) -> "SimulatedDisk":
        """What the next process finds when this one is killed now: everything that was written."""
        return self.after_power_failure(0.0)

    def after_power_failure(self, lost: float = 1.0, seed: int = 0) -> "SimulatedDisk":
        """What is found when the power fails now; `lost` of what is not sure is lost, 1.0 for all."""
        draw = Draw(lost, seed)
        tables: dict[Folder, dict[str, Node]] = {}

        def table(folder: Folder) -> dict[str, Node]:
            return tables.setdefault(folder, dict(folder.sure))

        changes: dict[Folder, list[Change]] = {}
        for change in self._unsure:
            changes.setdefault(change.folder, []).append(change)
        kept = {change for of_one in changes.values() for change in of_one[: draw.index(len(of_one) + 1)]}
        for change in self._unsure:
            if change in kept:
                change.apply(table)

        def after_crash(node: Node) -> Node:
            if isinstance(node, File):
                return node.after_crash(draw)
            names = {name: after_crash(child) for name, child in table(node).items()}
            return Folder(names, dict(names))

        left = SimulatedDisk()
        left.now_ms = self.now_ms
        root = after_crash(self._root)
        assert isinstance(root, Folder)
        left._root = root
        return left

    def contents(self, folder: str) -> dict[str, bytes]:
        """Every file below a folder with its bytes."""
        found: dict[str, bytes] = {}
        for name in self.names(folder):
            path = f"{folder}/{name}"
            found |= self.contents(path) if self.is_folder(path) else {path: self.read(path)}
        return found

    # Disk

    def names(self, folder: str) -> list[str]:
        return sorted(self._folder(folder).now)

    def is_folder(self, path: str) -> bool:
        return isinstance(self._find(path), Folder)

    def space(self, folder: str) -> Space:
        self._node(folder)
        return Space(VOLUME_BYTES, VOLUME_BYTES)

    def size(self, file: str) -> int:
        return len(self._file(file).now)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        data = self._file(file).now
        return bytes(data[start : len(data) if end is None else max(start, end)])

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        return self.read(file, start, end)

    # WritableDisk

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def open(self, file: str) -> OpenedFile:
        return Opened(self._file(file))

    def is_file(self, path: str) -> bool:
        return isinstance(self._find(path), File)

    def files(self, folder: str) -> list[str]:
        now = self._folder(folder).now
        return sorted(name for name, node in now.items() if isinstance(node, File))

    def write(self, file: str, start: int, data: bytes) -> None:
        node = self._made(file)
        node.write(start, data)
        node.modified_ms = self.now_ms
        self._called("write", file, start, len(data))

    def writer(self, file: str) -> Writer:
        return partial(self.write, file)

    def truncate(self, file: str, size: int) -> None:
        node = self._file(file)
        node.resize(size)
        node.modified_ms = self.now_ms
        self._called("truncate", file, size)

    def rename(self, path: str, to: str) -> None:
        node = self._node(path)
        (folder, name), (to_folder, to_name) = self._place(path), self._place(to)
        if path != to:
            self._change(Change(node, ((folder, name, False), (to_folder, to_name, True))))
        self._called("rename", path, to)

    def delete(self, file: str) -> bool:
        node = self._find(file)
        if isinstance(node, Folder):
            raise Unreadable(f"{file}: a folder")
        if node is not None:
            self._change(Change(node, ((*self._place(file), False),)))
        self._called("delete", file)
        return node is not None

    def make_folder(self, folder: str) -> None:
        at = self._root
        for name in _parts(folder):
            node = at.now.get(name)
            if node is None:
                node = Folder()
                self._change(Change(node, ((at, name, True),)))
            if not isinstance(node, Folder):
                raise Unreadable(f"{folder}: {name} is a file")
            at = node
        self._called("make_folder", folder)

    def delete_folder(self, folder: str) -> None:
        node = self._folder(folder)
        for name in list(node.now):
            path = f"{folder}/{name}"
            if isinstance(node.now[name], Folder):
                self.delete_folder(path)
            else:
                self.delete(path)
        self._change(Change(node, ((*self._place(folder), False),)))
        self._called("delete_folder", folder)

    def sync(self, file: str) -> None:
        self._file(file).sync()
        self._called("sync", file)

    def sync_folder(self, folder: str) -> None:
        node = self._folder(folder)
        for change in self._unsure:
            if change.folder is node:
                change.apply(lambda at: at.sure)
        self._unsure = [change for change in self._unsure if change.folder is not node]
        self._called("sync_folder", folder)

    def modified_ms(self, file: str) -> int:
        return self._file(file).modified_ms

    def state(self, file: str) -> FileState:
        node = self._node(file)
        return FileState(0, node.number, len(node.now), node.modified_ms * 1_000_000)

    def set_modified_ms(self, file: str, ms: int) -> None:
        self._file(file).modified_ms = ms
        self._called("set_modified_ms", file, ms)

    def mode(self, file: str) -> int:
        self._file(file)
        return 0o644

    def set_mode(self, file: str, mode: int) -> None:
        self._file(file)

    def lock(self, file: str) -> bool:
        self._made(file)
        self._called("lock", file)
        return True

    def unlock(self, file: str) -> None:
        self.delete(file)

    def real_path(self, path: str) -> str:
        return "/" + "/".join(part for part in _parts(path) if part != ".")

    def release(self, path: str) -> None:
        pass

    # Inside

    def _called(self, *words: object) -> None:
        self.calls.append(" ".join(map(str, words)))
        self.on_call()
        if len(self.calls) == self.crash_after:
            self._is_off = True
            raise Crashed(f"after call {self.crash_after}: {self.calls[-1]}")

    def _find(self, path: str) -> Node | None:
        if self._is_off:
            raise Crashed(path)
        folder, name = _split(path)
        at = self._folders.get(folder)
        if at is None:
            found: Node | None = self._root
            for part in _parts(folder):
                found = found.now.get(part) if isinstance(found, Folder) else None
            if not isinstance(found, Folder):
                return None
            at = self._folders[folder] = found
        return at.now.get(name) if name else at

    def _node(self, path: str) -> Node:
        node = self._find(path)
        if node is None:
            raise NoSuchFile(f"{path}: no such file or folder; check its name")
        return node

    def _file(self, path: str) -> File:
        node = self._node(path)
        if not isinstance(node, File):
            raise Unreadable(f"{path}: a folder")
        return node

    def _folder(self, path: str) -> Folder:
        node = self._node(path)
        if not isinstance(node, Folder):
            raise NoSuchFile(f"{path}: no such folder; check its name")
        return node

    def _made(self, path: str) -> File:
        node = self._find(path)
        if node is None:
            node = File(modified_ms=self.now_ms)
            self._change(Change(node, ((*self._place(path), True),)))
        if not isinstance(node, File):
            raise Unreadable(f"{path}: a folder")
        return node

    def _place(self, path: str) -> tuple[Folder, str]:
        above, name = _split(path)
        return self._folder(above), name

    def _change(self, change: Change) -> None:
        change.apply(lambda folder: folder.now)
        for folder, _, is_taken in change.names:
            folder.modified_ms = self.now_ms
            if not is_taken and isinstance(change.node, Folder):
                self._folders.clear()
        self._unsure.append(change)


@cache
def _parts(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)


@cache
def _split(path: str) -> tuple[str, str]:
    """The folder of a path and its name there; two empty texts for the root."""
    parts = _parts(path)
    return ("/".join(parts[:-1]), parts[-1]) if parts else ("", "")
