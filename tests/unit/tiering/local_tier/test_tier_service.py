import threading

import pytest
from own_worlds import OwnWorld


def test_a_tier_without_a_place_for_compiled_code_says_so_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("no folder for compiled code")

    world, has_ended = OwnWorld(), threading.Event()
    world.start()
    monkeypatch.setattr("tiering.local_tier.service.warm_up", fails)
    world.service.run_in_background(has_ended.set)
    assert has_ended.wait(60)
    assert "no folder for compiled code" in str(world.service.failure)
    world.service.stop()
