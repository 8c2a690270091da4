"""When retention may next have something to do: never later than it has, and not at every interval."""

from dataclasses import replace

import pytest
from archive_fakes import MemoryStore
from hypothesis import given
from hypothesis import strategies as st
from made_manifests import entry
from made_manifests import manifest as made

from remote.manifest.entries import Entries
from remote.manifest.model import Deleting, Manifest
from tiering.retention.due import next_due_ms
from tiering.retention.plan import Policy, plan_retention

NOW_MS, INTERVAL_MS, LONGEST_MS = 1_000_000, 300, 10_000


def manifest(*times_ms: int) -> Manifest:
    return made(*(entry(10 * n, 10 * n + 10, max_timestamp_ms=ms) for n, ms in enumerate(times_ms)))


def due_ms(of: Manifest, policy: Policy, now_ms: int = NOW_MS) -> int:
    return next_due_ms(of, policy, now_ms, INTERVAL_MS, LONGEST_MS)


@pytest.mark.parametrize(
    ("of", "policy", "expected"),
    [
        (manifest(), Policy(), LONGEST_MS),
        (manifest(NOW_MS), Policy(), LONGEST_MS),
        (manifest(NOW_MS), Policy(retention_ms=5_000), 5_001),
        (manifest(NOW_MS, NOW_MS - 1_000), Policy(retention_ms=5_000), 4_001),
        (manifest(NOW_MS), Policy(retention_ms=5), INTERVAL_MS),
        (manifest(NOW_MS), Policy(retention_ms=10**9), LONGEST_MS),
        (manifest(0), Policy(retention_bytes=1), LONGEST_MS),
    ],
)
def test_it_is_when_the_oldest_entry_is_too_old_between_an_interval_and_an_hour(
    of: Manifest, policy: Policy, expected: int
) -> None:
    assert due_ms(of, policy) - NOW_MS == expected


def test_what_was_given_up_is_due_after_its_delay() -> None:
    item = entry(0, 10)
    waiting = replace(manifest(), log_start_offset=10, deleting=(Deleting(item, NOW_MS - 100),))
    assert due_ms(waiting, Policy(delete_delay_ms=2_000)) - NOW_MS == 1_900


@given(
    st.lists(st.integers(NOW_MS - 30_000, NOW_MS + 5_000), max_size=5),
    st.none() | st.integers(0, 30_000),
    st.integers(0, 20_000),
)
def test_before_it_is_due_nothing_goes_that_did_not_go_at_once(times: list[int], retention_ms: int | None, later_ms: int) -> None:
    of, policy = manifest(*times), Policy(retention_ms=retention_ms, delete_delay_ms=0)

    def cuts(now_ms: int) -> tuple[object, ...]:
        return plan_retention(Entries.of(MemoryStore(), of), policy, now_ms, lambda item: False).cuts

    if not cuts(NOW_MS) and NOW_MS + later_ms < due_ms(of, policy) and later_ms > INTERVAL_MS:
        assert cuts(NOW_MS + later_ms) == ()
