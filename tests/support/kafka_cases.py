"""Lists of Kafka's tests beside ours, as KAFKA_CASES.md files have them: read, and held against the tests that they name.

A class may come in several sections, each for a part of it: `## RemoteLogManagerTest: reading`.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parents[1]
DOES_NOT_APPLY = "does not apply: "


class Case(NamedTuple):
    """A test of Kafka's and what is said of it."""

    name: str
    ours: str


class Section(NamedTuple):
    """A test class of Kafka's, or a part of it: how many tests it is said to have, and those listed."""

    title: str
    stated: int
    cases: tuple[Case, ...]

    @property
    def kafka_class(self) -> str:
        return self.title.partition(":")[0]


@cache
def sections(file: Path) -> tuple[Section, ...]:
    found = []
    for text in re.split(r"^## ", file.read_text(), flags=re.MULTILINE)[1:]:
        title, _, rest = text.partition("\n")
        stated = re.match(r"\n(\d+) tests?\.\n", rest)
        assert stated, f"{title}: its first line says how many tests it has"
        rows = [line for line in rest.splitlines() if line.startswith("|")]
        assert rows[:2] == ["| Kafka's test | ours |", "|---|---|"], title
        found.append(Section(title, int(stated[1]), tuple(case(title, row) for row in rows[2:])))
    return tuple(found)


def case(title: str, row: str) -> Case:
    match = re.fullmatch(r"\| `(\w+)` \| (.+) \|", row)
    assert match, f"{title}: not a test and what is ours: {row}"
    return Case(match[1], match[2])


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of the test functions in the file of this name, wherever it lies."""
    paths = list(TESTS.rglob(file))
    assert len(paths) == 1, f"{file}: expected one such file, found {len(paths)}"
    tree = ast.parse(paths[0].read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


def references(ours: str) -> Iterator[tuple[str, str]]:
    for reference in ours.split(", "):
        match = re.fullmatch(r"`(test_\w+\.py)::(test_\w+)`", reference)
        assert match, f"neither a test of ours nor a reason: {reference}"
        yield match[1], match[2]


def assert_every_case_is_listed_once(file: Path) -> None:
    named: set[tuple[str, str]] = set()
    for section in sections(file):
        names = {(section.kafka_class, case.name) for case in section.cases}
        assert len(names) == len(section.cases) == section.stated, section.title
        assert not names & named, section.title
        named |= names
    titles = [section.title for section in sections(file)]
    assert titles
    assert len(titles) == len(set(titles))


def assert_every_case_has_a_test_or_a_reason(section: Section) -> None:
    for _, ours in section.cases:
        if ours.startswith(DOES_NOT_APPLY):
            assert "::" not in ours
            assert len(ours) > len(DOES_NOT_APPLY) + 10
            continue
        for file, name in references(ours):
            assert name in names_in(file), f"{file}::{name}"
