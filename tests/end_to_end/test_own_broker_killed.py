"""An endpoint of ours that is killed under producers and a group, and loses its disk: what it has acknowledged is there, once."""

from pathlib import Path

import pytest
from soak_life import Life, Size

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_what_is_acknowledged_is_read_once_in_its_order_over_a_kill_and_a_lost_disk(tmp_path: Path) -> None:
    report = Life(tmp_path, Size(8_000_000, 800_000, 4, 4_000, kills=1), seed=1).run()
    assert report["wrong"] == []
    assert report["begin in the archive"] == 4
    assert report["told"]["send ok"] == 2_200
