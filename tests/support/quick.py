"""`--quick`: the tests that start no Java and no server and take a moment, which is most of them, in under two minutes.

Most of what starts one is told by its folder or its marker and not collected. Where a test finds out late, the helper that
would start it skips.
"""

from functools import cache
from pathlib import Path

import pytest

_TESTS = Path(__file__).parent.parent
_FOLDERS = ("airflow", "docs", "end_to_end", "faults", "kafka", "spark", "terraform")
_MARKERS = ("oracle", "slow", "spark", "strict_s3")

_on = False


def turn_on() -> None:
    """From now on nothing is started."""
    global _on
    _on = True


def starts_a_server() -> None:
    """Skips the test that is about to do so, if there is to be none."""
    if _on:
        pytest.skip("--quick starts no server and no Java")


def is_left_out(path: Path) -> bool:
    """Whether the tests below are known to start one by their folder."""
    return folder(path) in _FOLDERS


def is_marked(item: pytest.Item) -> bool:
    """Whether a test is known to start one by its markers."""
    return any(item.get_closest_marker(name) for name in _MARKERS)


@cache
def folder(path: Path) -> str:
    """The folder of `tests` that a path is in."""
    return path.relative_to(_TESTS).parts[0] if path.is_relative_to(_TESTS) and path != _TESTS else ""
