"""Memory that is used again must be nobody else's by then."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from remote.buffer_pool import POOLED_BYTES_MIN, BufferPool

SIZE = POOLED_BYTES_MIN + 100


def place(view: memoryview) -> int:
    """Where its bytes are."""
    found: int = np.frombuffer(view, np.uint8).ctypes.data
    return found


def test_memory_is_used_again_when_its_last_view_is_gone() -> None:
    pool = BufferPool(1)
    view = pool.take(SIZE)
    before = place(view)
    del view
    assert place(pool.take(SIZE)) == before


def test_bodies_of_nearly_one_size_share_memory() -> None:
    pool = BufferPool(1)
    before = place(pool.take(SIZE + 5))
    view = pool.take(SIZE + 7)
    assert (place(view), len(view)) == (before, SIZE + 7)


@pytest.mark.parametrize(
    "derived",
    [
        lambda view: view[5:9],
        lambda view: np.frombuffer(view, np.uint8),
        lambda view: np.frombuffer(view, np.uint8)[5:][:4],
        lambda view: np.frombuffer(view, np.uint8).reshape(2, -1)[1].data,
        lambda view: memoryview(np.frombuffer(view[8:16], ">i8")[:1]),
    ],
)
def test_memory_stays_as_it_is_while_anything_derived_from_it_is_left(derived: Callable[[memoryview], Any]) -> None:
    pool = BufferPool(4)
    view = pool.take(SIZE)
    view[:] = bytes([7]) * SIZE
    kept = derived(view)
    seen = bytes(kept)
    del view
    others = [pool.take(SIZE) for _ in range(3)]
    for other in others:
        other[:] = bytes(SIZE)
    assert bytes(kept) == seen


def test_no_more_memory_is_kept_than_allowed() -> None:
    pool = BufferPool(2)
    views = [pool.take(SIZE) for _ in range(5)]
    views.clear()
    assert len(pool._kept) == 2


def test_memory_of_another_size_is_kept_for_who_wants_it() -> None:
    pool = BufferPool(2)
    before = place(pool.take(SIZE))
    other = pool.take(2 * SIZE)
    assert len(other) == 2 * SIZE
    assert place(pool.take(SIZE)) == before


def test_no_two_threads_have_the_same_memory() -> None:
    pool, wrong = BufferPool(2), []

    def take(number: int) -> None:
        for _ in range(200):
            view = np.frombuffer(pool.take(SIZE), np.uint8)
            view[:: SIZE // 8] = number
            if (view[:: SIZE // 8] != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
