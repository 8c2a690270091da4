import select
import sys
from pathlib import Path

import pytest
from numba.core import caching

from local_log.formats.kernels.scan import walk
from local_log.kernel_cache import ShippedCode
from tiering.endpoint.fetch_loop import kernel
from tiering.endpoint.fetch_loop.loading import answer_ready


def test_the_loop_is_loaded_and_threads_take_turns_as_before() -> None:
    before, said = sys.getswitchinterval(), list[str]()
    assert answer_ready(said.append) is kernel.answer_ready
    assert sys.getswitchinterval() == before
    assert said == []


def test_without_epoll_there_is_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.delattr(select, "epoll")
    assert answer_ready(said.append) is None
    assert said == ["fetches are answered without the compiled loop: this system has no epoll"]


def test_a_loop_that_cannot_be_compiled_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever numba raises: also what is no RuntimeError, as its own errors."""

    def cannot_write(of: object) -> None:
        raise OSError("a read-only file system")

    before, said = sys.getswitchinterval(), list[str]()
    for locator in (*caching.CacheImpl._locator_classes, ShippedCode):
        monkeypatch.setattr(locator, "ensure_cache_path", cannot_write)
    monkeypatch.delattr("tiering.endpoint.fetch_loop.kernel")
    monkeypatch.delitem(sys.modules, "tiering.endpoint.fetch_loop.kernel")
    assert answer_ready(said.append) is None
    (line,) = said
    assert line.startswith("fetches are answered without the compiled loop, which cannot be loaded: ")
    assert "\n" not in line
    assert sys.getswitchinterval() == before


def test_the_loop_is_compiled_to_a_folder_of_ours_where_no_other_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = ShippedCode.from_function(kernel.answer_ready.py_func, kernel.__file__)
    of_walk = ShippedCode.from_function(walk.py_func, "scan.py")
    assert place is not None
    assert of_walk is not None
    assert Path(place.get_cache_path()).parent.parent == tmp_path
    assert place.get_source_stamp() != of_walk.get_source_stamp(), "it changes with its own sources"
