import select
import sys

import pytest

from tiering.endpoint.fetch_loop import kernel
from tiering.endpoint.fetch_loop.loading import answer_ready


def test_the_loop_is_loaded_and_threads_take_turns_as_before() -> None:
    before = sys.getswitchinterval()
    assert answer_ready() is kernel.answer_ready
    assert sys.getswitchinterval() == before


def test_without_epoll_or_a_place_for_compiled_code_there_is_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.delattr(select, "epoll")
        assert answer_ready() is None
    monkeypatch.delattr("tiering.endpoint.fetch_loop.kernel")
    monkeypatch.setitem(sys.modules, "tiering.endpoint.fetch_loop.kernel", None)  # as if numba had raised
    assert answer_ready() is None
