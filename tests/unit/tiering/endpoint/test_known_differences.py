from pathlib import Path

from known_differences import KNOWN_DIFFERENCES
from known_old_differences import KNOWN_OLD_DIFFERENCES

PAGE = Path(__file__).parents[4] / "docs" / "serve.md"


def test_the_page_lists_every_known_difference_from_a_brokers_answers() -> None:
    section = PAGE.read_text().partition("## Where answers differ")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| Answer ")]
    assert rows == [f"| {one.what} | {one.reason} |" for one in (*KNOWN_DIFFERENCES, *KNOWN_OLD_DIFFERENCES)]
