"""Keys to partitions, as Kafka's own producers send them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_log.formats.kernels.keys import partitions_of_keys

KAFKAS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""Kafka's own test of murmur2 (UtilsTest)."""


def partitions(keys: list[bytes | None], count: int, skip: int = 0) -> list[int]:
    column = pa.array([b"skipped"] * skip + keys, pa.binary()).slice(skip)
    bits, ends, data = column.buffers()
    out = np.empty(len(keys), np.int32)
    none = np.empty(0, np.uint8)
    nulls = partitions_of_keys(
        np.frombuffer(ends, np.int32)[skip : skip + len(keys) + 1],
        np.frombuffer(data, np.uint8) if data else none,
        np.frombuffer(bits, np.uint8) if bits else none,
        skip, count, out,
    )  # fmt: skip
    assert nulls == sum(key is None for key in keys)
    return out.tolist()


@pytest.mark.parametrize("count", [1, 3, 7, 100, 2**31 - 1])
def test_a_key_goes_where_kafkas_producers_send_it(count: int) -> None:
    assert partitions([*KAFKAS], count) == [(h & 0x7FFFFFFF) % count for h in KAFKAS.values()]


def test_a_null_key_has_none_and_an_empty_one_has() -> None:
    assert partitions([None, b"", None, b"21"], 5, skip=3) == [
        -1,
        (275646681 & 0x7FFFFFFF) % 5,
        -1,
        (-973932308 & 0x7FFFFFFF) % 5,
    ]


@given(st.lists(st.none() | st.binary(max_size=20), max_size=20), st.integers(1, 50), st.integers(0, 9))
def test_where_a_key_goes_depends_on_nothing_else(keys: list[bytes | None], count: int, skip: int) -> None:
    together = partitions(keys, count, skip)
    assert together == [partitions([key], count)[0] for key in keys]
    assert all(p == -1 if key is None else 0 <= p < count for p, key in zip(together, keys, strict=True))
