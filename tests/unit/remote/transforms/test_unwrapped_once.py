"""Data keys are asked for once, by however many threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from local_log.errors import Unavailable
from remote.transforms.unwrapped_once import UnwrappedOnce


class Ring:
    """Unwraps when it may go on; fails while it is down."""

    current = "k"

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.may_go = threading.Event()
        self.is_down = False

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        return key_id.encode() + data_key

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        self.asked.append(wrapped)
        assert self.may_go.wait(60)
        if self.is_down:
            raise Unavailable("no answer")
        return wrapped.removeprefix(key_id.encode())


def test_ten_threads_cause_one_request_and_what_was_used_last_is_kept() -> None:
    inner = Ring()
    ring = UnwrappedOnce(inner, kept_max=2)
    wrapped = ring.wrap(ring.current, b"data")
    with ThreadPoolExecutor(10) as pool:
        found = [pool.submit(ring.unwrap, "k", wrapped) for _ in range(10)]
        inner.may_go.set()
        assert {one.result() for one in found} == {b"data"}
    assert inner.asked == [wrapped]
    for other in (b"ka", b"k", b"ka", b"kb", wrapped):
        ring.unwrap("k", other)
    assert inner.asked == [wrapped, b"ka", b"k", b"kb", wrapped]


def test_an_error_is_not_kept() -> None:
    inner = Ring()
    inner.may_go.set()
    inner.is_down = True
    ring = UnwrappedOnce(inner)
    with pytest.raises(Unavailable):
        ring.unwrap("k", b"kx")
    inner.is_down = False
    assert ring.unwrap("k", b"kx") == b"x"
