"""Errors: where they point to, what they say, and that they cross processes."""

import pickle

import pytest

from local_log.errors import Corrupt, LogError, NotFound, OffsetOutOfRange


def test_a_finding_in_a_buffer_is_placed_in_its_file() -> None:
    found = Corrupt("no magic", position=16)
    placed = found.at("some.log", 1_000)
    assert (placed.problem, placed.file, placed.position) == ("no magic", "some.log", 1_016)
    assert str(placed) == "some.log at byte 1016: no magic"
    assert str(found) == "buffer at byte 16: no magic"


def test_an_offset_out_of_range_says_what_is_in_range() -> None:
    error = OffsetOutOfRange("orders-0", 5, 10, 20)
    assert "[10, 20)" in str(error)
    assert isinstance(error, NotFound)


@pytest.mark.parametrize(
    "error",
    [
        Corrupt("bad", file="f", position=3),
        OffsetOutOfRange("p-0", 1, 2, 3),
        NotFound("gone"),
    ],
)
def test_errors_cross_processes_whole(error: LogError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
