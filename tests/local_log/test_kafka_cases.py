"""KAFKA_CASES.md and the tests that it names: neither says what the other does not have."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent.parent
LIST = Path(__file__).parent / "KAFKA_CASES.md"
DOES_NOT_APPLY = "does not apply: "


class Case(NamedTuple):
    """A test of Kafka's and what is said of it."""

    name: str
    ours: str


class Section(NamedTuple):
    """A test class of Kafka's: how many tests it is said to have, and those listed."""

    kafka_class: str
    stated: int
    cases: tuple[Case, ...]


@cache
def sections() -> tuple[Section, ...]:
    found = []
    for text in re.split(r"^## ", LIST.read_text(), flags=re.MULTILINE)[1:]:
        kafka_class, _, rest = text.partition("\n")
        stated = re.match(r"\n(\d+) tests?\.\n", rest)
        assert stated, f"{kafka_class}: its first line says how many tests it has"
        rows = [line for line in rest.splitlines() if line.startswith("|")]
        assert rows[:2] == ["| Kafka's test | ours |", "|---|---|"], kafka_class
        found.append(Section(kafka_class, int(stated[1]), tuple(case(kafka_class, row) for row in rows[2:])))
    return tuple(found)


def case(kafka_class: str, row: str) -> Case:
    match = re.fullmatch(r"\| `(\w+)` \| (.+) \|", row)
    assert match, f"{kafka_class}: not a test and what is ours: {row}"
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


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.kafka_class)
def test_every_test_of_kafka_s_is_listed_once(section: Section) -> None:
    names = [case.name for case in section.cases]
    assert len(names) == len(set(names)) == section.stated


def test_every_class_of_kafka_s_is_listed_once() -> None:
    classes = [section.kafka_class for section in sections()]
    assert classes
    assert len(classes) == len(set(classes))


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.kafka_class)
def test_every_test_of_ours_that_is_named_exists_and_every_other_case_has_a_reason(section: Section) -> None:
    for _, ours in section.cases:
        if ours.startswith(DOES_NOT_APPLY):
            assert "::" not in ours
            assert len(ours) > len(DOES_NOT_APPLY) + 10
            continue
        for file, name in references(ours):
            assert name in names_in(file), f"{file}::{name}"
