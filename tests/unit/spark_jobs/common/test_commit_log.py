"""The chain of a backfill's commits: one winner for each version, read back as it was written."""

from itertools import pairwise
from pathlib import Path

import pytest
from archive_fakes import FixedClock
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import AlreadyExists, Corrupt, Newer, Unavailable, Unknown
from remote.store.api import ObjectStore
from remote.store.conditional_put import PUT_ATTEMPTS_MAX
from remote.store.open import open_store
from spark_jobs.common import commit_log
from spark_jobs.common.commit_log import Bounds, Commit, File, Part, Settings, decode, encode, following, nothing
from spark_jobs.common.once import put_once

SETTINGS = Settings(("key", "offset"), "date", False)
PART = Part("orders", "a" * 22, 3)
FILE = File("topic=orders/3-0-9.parquet", "_tiering/staging/x", 9, 1234)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "target"))


def after(head: Commit, run_id: str, *added: Bounds) -> Commit:
    return following(head, run_id, 1_700_000_000_000, [(PART, bounds) for bounds in added], [FILE])


def test_a_commit_is_read_back_as_it_was_made() -> None:
    commit = after(nothing(SETTINGS), "run", (0, 9), (20, 30))
    assert decode(encode(commit), "key") == commit


def test_the_newest_version_is_the_first_that_is_listed(store: ObjectStore) -> None:
    head = nothing(SETTINGS)
    for number in range(12):
        head = after(head, f"run-{number}", (number, number + 1))
        assert commit_log.put(store, head) == head
    newest = commit_log.newest(store)
    assert newest == head
    assert newest.version == 12
    assert newest.covered == {PART: ((0, 12),)}


def test_nothing_was_committed_where_nothing_is(store: ObjectStore) -> None:
    assert commit_log.newest(store) is None


def test_of_two_runs_at_one_version_the_first_wins_and_the_second_gets_to_know(store: ObjectStore) -> None:
    ours, theirs = after(nothing(SETTINGS), "ours", (0, 9)), after(nothing(SETTINGS), "theirs", (0, 7))
    assert commit_log.put(store, theirs) == theirs
    assert commit_log.put(store, ours) == theirs


def test_versions_wait_for_publication_in_order(store: ObjectStore) -> None:
    first = commit_log.put(store, after(nothing(SETTINGS), "a", (0, 1)))
    second = commit_log.put(store, after(first, "b", (1, 2)))
    assert list(commit_log.unpublished(store, second)) == [first, second]
    commit_log.mark_published(store, first)
    assert list(commit_log.unpublished(store, second)) == [second]
    commit_log.mark_published(store, second)
    commit_log.mark_published(store, second)
    assert list(commit_log.unpublished(store, second)) == []


@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda t: (t[0], t[0] + t[1])), max_size=4)))
def test_what_is_covered_is_the_union_of_all_that_was_added_in_disjoint_ranges(runs: list[list[Bounds]]) -> None:
    head = nothing(SETTINGS)
    for added in runs:
        head = after(head, "run", *added)
    ranges = head.covered.get(PART, ())
    assert {o for start, end in ranges for o in range(start, end)} == {o for run in runs for s, e in run for o in range(s, e)}
    assert all(a[1] < b[0] for a, b in pairwise(ranges))


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"format": 1}', b"\xff", b'{"format": "x"}'])
def test_what_is_no_commit_is_corrupt_and_names_its_key(body: bytes) -> None:
    with pytest.raises(Corrupt, match="some-key"):
        decode(body, "some-key")


def test_a_newer_format_asks_for_an_upgrade() -> None:
    with pytest.raises(Newer, match="upgrade"):
        decode(encode(after(nothing(SETTINGS), "run", (0, 1))).replace(b'"format": 1', b'"format": 2'), "key")


class LosesAnswers:
    """A store of one object whose puts happen or not, and never answer; then it does."""

    url = "lossy://"

    def __init__(self, outcomes: list[bool]) -> None:
        self.outcomes = outcomes
        self.body: bytes | None = None

    def put_if_absent(self, key: str, body: bytes) -> None:
        happens = self.outcomes.pop(0) if self.outcomes else None
        if self.body is not None:
            raise AlreadyExists(key)
        if happens is None or happens:
            self.body = body
        if happens is not None:
            raise Unknown(key)

    def get(self, key: str) -> bytes:
        from local_log.errors import NotFound

        if self.body is None:
            raise NotFound(key)
        return self.body


@pytest.mark.parametrize("outcomes", [[], [True], [False, True], [False, False]])
def test_a_put_whose_answer_was_lost_is_read_back_and_repeated_only_if_it_never_happened(outcomes: list[bool]) -> None:
    assert put_once(LosesAnswers(outcomes), "key", b"ours", FixedClock()) == b"ours"  # type: ignore[arg-type]


def test_puts_that_never_happen_end_with_a_reason() -> None:
    with pytest.raises(Unavailable, match="try again later"):
        put_once(LosesAnswers([False] * PUT_ATTEMPTS_MAX), "key", b"ours", FixedClock())  # type: ignore[arg-type]
