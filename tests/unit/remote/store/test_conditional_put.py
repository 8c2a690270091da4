"""Put-if-absent with all its answers: done, key taken, unknown."""

import pytest
from archive_fakes import AppliesLate, FailsBefore, FixedClock, LosesAnswer, MemoryStore, Nth, verbs

from local_log.errors import Unavailable
from remote.store.conditional_put import PUT_ATTEMPTS_MAX, PutOutcome, PutResult, conditional_put

KEY = "key"


def holding(body: bytes) -> MemoryStore:
    store = MemoryStore()
    store.put_if_absent(KEY, body)
    store.calls.clear()
    return store


def test_a_put_that_is_answered_is_done_and_not_read_back() -> None:
    store = MemoryStore()
    assert conditional_put(store, FixedClock(), KEY, b"ours") == PutResult(PutOutcome.done)
    assert verbs(store.calls) == ["put_if_absent"]


def test_a_key_that_another_has_is_taken_and_what_is_there_is_given() -> None:
    assert conditional_put(holding(b"other"), FixedClock(), KEY, b"ours") == PutResult(PutOutcome.key_taken, b"other")


def test_equal_bytes_are_ours_unless_the_caller_says_by_what_it_knows_its_own() -> None:
    store, clock = holding(b"ours, signed"), FixedClock()
    assert conditional_put(store, clock, KEY, b"ours").outcome is PutOutcome.key_taken
    assert conditional_put(store, clock, KEY, b"ours", lambda found: found.startswith(b"ours")).outcome is PutOutcome.done


class FreesKeys(FailsBefore):
    """The object that has the key is deleted before it can be read back."""

    def get(self, key: str) -> bytes:
        self.inner.delete(key)
        return super().get(key)


def test_a_key_that_was_taken_and_is_free_again_is_not_ours() -> None:
    door = FreesKeys(holding(b"other"), Unavailable("down"), lambda verb, key: False)
    assert conditional_put(door, FixedClock(), KEY, b"ours") == PutResult(PutOutcome.key_taken)


@pytest.mark.parametrize("lost", [(1,), (1, 2), (1, 2, 3), ()])
def test_a_put_whose_answers_were_lost_is_done(lost: tuple[int, ...]) -> None:
    store, clock = MemoryStore(), FixedClock()
    put = conditional_put(LosesAnswer(store, Nth("put_if_absent", *lost)), clock, KEY, b"ours")
    assert put == PutResult(PutOutcome.done, b"ours")
    assert clock.slept == [0.1, 0.4, 1.6][: len(lost) or PUT_ATTEMPTS_MAX - 1]


def test_a_put_that_has_not_arrived_is_unknown() -> None:
    door = AppliesLate(MemoryStore(), Nth("put_if_absent"))
    assert conditional_put(door, FixedClock(), KEY, b"ours") == PutResult(PutOutcome.unknown)
    assert verbs(door.calls) == ["put_if_absent"] * PUT_ATTEMPTS_MAX + ["get"]


def test_a_put_that_cannot_be_read_back_is_unknown() -> None:
    door = FailsBefore(holding(b"other"), Unavailable("down"), Nth("get"))
    assert conditional_put(door, FixedClock(), KEY, b"ours") == PutResult(PutOutcome.unknown)


def test_unavailable_says_that_nothing_was_written() -> None:
    store = MemoryStore()
    with pytest.raises(Unavailable):
        conditional_put(FailsBefore(store, Unavailable("down"), Nth("put_if_absent")), FixedClock(), KEY, b"ours")
    assert store.objects == {}


def test_a_failure_after_a_lost_answer_is_read_back_and_not_called_unavailable() -> None:
    store = MemoryStore()
    door = FailsBefore(LosesAnswer(store, Nth("put_if_absent", 1)), Unavailable("down"), Nth("put_if_absent", 2))
    assert conditional_put(door, FixedClock(), KEY, b"ours").outcome is PutOutcome.done
