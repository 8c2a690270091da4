"""Which lines of a package schedules have reached: a line is noted when it is first executed, and told by file."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

Lines = dict[str, set[int]]
"""Line numbers by file."""


@contextmanager
def reached(folders: tuple[Path, ...]) -> Iterator[Lines]:
    """The lines of Python files below the folders that are executed in the block.

    By this thread in any greenlet, and by threads that it starts.
    """
    found: Lines = {}
    roots = tuple(f"{folder}/" for folder in folders)

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            found[frame.f_code.co_filename].add(frame.f_lineno)
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(roots):
            return None
        found.setdefault(name, set())
        return line

    threading.settrace(call)
    sys.settrace(call)
    try:
        yield found
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  # as the documentation has it


def told(found: Lines, folders: tuple[Path, ...]) -> Iterator[str]:
    """A line for each file, those of which least was reached first, then one for each folder.

    Lines that are executed once, when a module is loaded, do not count.
    """
    shares: dict[Path, tuple[int, int]] = {}
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            lines = _lines(compile(file.read_text(), str(file), "exec"))
            shares[file] = len(lines & found.get(str(file), set())), len(lines)
    rows = sorted((known / of, str(file), known, of) for file, (known, of) in shares.items() if of)
    for share, name, known, of in rows:
        yield f"{share:6.1%} {known:5} of {of:5}  {name}"
    for folder in folders:
        mine = [of for file, of in shares.items() if file.is_relative_to(folder)]
        known, of = sum(k for k, _ in mine), sum(n for _, n in mine)
        yield f"{known / of:6.1%} {known:5} of {of:5}  all of {folder}"


def _lines(module: CodeType) -> set[int]:
    """The lines of all functions of a module."""
    codes = [c for c in module.co_consts if isinstance(c, CodeType)]
    found: set[int] = set()
    while codes:
        code = codes.pop()
        inner = [c for c in code.co_consts if isinstance(c, CodeType)]
        codes += inner
        if code.co_flags & 0x02:  # a function's locals are fast, a class' are not
            found |= {line for _, _, line in code.co_lines() if line and line != code.co_firstlineno}
            found -= {c.co_firstlineno for c in inner}
    return found
