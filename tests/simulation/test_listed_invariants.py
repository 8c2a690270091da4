"""The list of what must hold: every line names who checks it, and what it names exists."""

import ast
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
ROW = re.compile(r"^\| ([ADS]?[0-9]+) \| (.+) \| (.+) \|$", re.MULTILINE)
NAME = re.compile(r"`([\w.]+)`")
ROWS = ROW.findall((HERE / "INVARIANTS.md").read_text())


def functions_of(module: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.FunctionDef)}


def test_all_invariants_are_listed_once() -> None:
    numbers = [number for number, _, _ in ROWS]
    assert numbers == [
        *(f"D{n}" for n in range(1, 13)),
        *(str(n) for n in range(1, 53)),
        *(f"S{n}" for n in range(1, 5)),
        *(f"A{n}" for n in range(1, 4)),
    ]


def test_every_invariant_is_checked_by_something_that_exists() -> None:
    predicates = {f"{m.stem}.{name}" for m in (HERE / "simulated").glob("*.py") for name in functions_of(m)}
    tests = {name for file in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())}
    tests |= {name for file in (TESTS / "support").glob("*.py") for name in re.findall(r"def (test_\w+)", file.read_text())}
    named = {number: NAME.findall(checked) for number, _, checked in ROWS}
    assert [number for number, names in named.items() if not names] == []
    assert {(number, name) for number, names in named.items() for name in names} <= {
        (number, name) for number in named for name in predicates | tests
    }
