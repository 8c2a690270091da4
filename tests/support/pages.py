"""The pages of docs/ as a reader uses them: the files that they name, the commands that they show, and what those answer.

A block of commands is of the language `console`: `$ command`, more of it behind `> `, then its answer, where `…` is anything.
A block with a caption is a file of that name. A block of the class `not-run` is not run, and `% Not run: …` before it says why.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^(% Not run: [^\n]+\n)?(```+|~~~+)([^\n]*)\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
_OPTION = re.compile(r":(class|caption): ?(.*)")


@dataclass(frozen=True)
class File:
    """What the reader puts into a file."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """What the reader types, and what the page says that it answers; None where it says nothing."""

    typed: str
    answer: str | None


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, its text without options, and why it is not run, "" where it is."""

    page: str
    language: str
    text: str
    caption: str
    is_run: bool
    reason: str


def pages() -> dict[str, str]:
    """The text of each page, by its name."""
    return {path.stem: path.read_text() for path in sorted(DOCS.glob("*.md"))}


def blocks(page: str) -> list[Block]:
    """All blocks of a page, in order."""
    return [_block(page, match) for match in _BLOCK.finditer(pages()[page])]


def _block(page: str, match: re.Match[str]) -> Block:
    reason, _, info, text = match.groups()
    language = info.removeprefix("{code-block}").strip()
    lines = text.splitlines()
    options = {}
    while lines and (option := _OPTION.fullmatch(lines[0])):
        options[option[1]] = option[2].strip()
        del lines[0]
    body = "\n".join(lines).strip("\n") + "\n"
    why = (reason or "").removeprefix("% Not run: ").strip()
    return Block(page, language, body, options.get("caption", ""), options.get("class") != "not-run", why)


def steps(page: str) -> list[File | Command]:
    """What a reader does who follows a page from its first line to the last."""
    done: list[File | Command] = []
    for block in blocks(page):
        if block.caption:
            done.append(File(block.caption, block.text))
        elif block.language == "console" and block.is_run:
            done += commands(block.text)
    return done


def commands(text: str) -> list[Command]:
    """The commands of a block."""
    found: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            assert found, f"an answer before any command: {line}"
            found[-1][1].append(line)
    return [Command("\n".join(typed), "\n".join(answer) if any(answer) else None) for typed, answer in found]


def answers(shown: str, said: str) -> bool:
    """Whether a command said what the page shows; spaces at the ends of lines do not count."""
    parts = "\n".join(line.rstrip() for line in shown.strip().splitlines()).split("…")
    plain = "\n".join(line.rstrip() for line in said.strip().splitlines())
    return re.fullmatch(".*?".join(map(re.escape, parts)), plain, re.DOTALL) is not None
