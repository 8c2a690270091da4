"""A process that is killed at any moment of a transaction: what comes after it sees all of the transaction or nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from local_tiers import Host
from simulated_disk import Crashed, SimulatedDisk
from transacting_endpoint import SMALL, TransactingEndpoint

from tiering.endpoint.protocol.errors import ErrorCode

OTHER = "more-0"


@pytest.fixture(scope="module")
def at() -> TransactingEndpoint:
    """One that has stopped after a transaction."""
    at = TransactingEndpoint(more_topics=1)
    producer = at.init()
    at.write(producer, 0)
    at.end(producer, commit=True)
    at.tier.stop()
    return at


def start(at: TransactingEndpoint, disk: SimulatedDisk) -> None:
    at.host = Host(dirs=("/a",), settings=SMALL, disk=disk)
    at.own(at.host.started())


def transacts(at: TransactingEndpoint, answered: list[Any], *, commit: bool) -> None:
    """A transaction over two topics and a group; `answered` has what the producer was told."""
    producer = at.init()
    answered.append(producer)
    answered.append(at.write(producer, 0))
    answered.append(at.write(producer, 0, topic=OTHER))
    answered.append(at.commit_offset(producer, 7))
    answered.append(at.end(producer, commit=commit))


def calls_of(at: TransactingEndpoint, act: Callable[[], object]) -> int:
    before = len(at.host.disk.calls)
    act()
    return len(at.host.disk.calls) - before


@pytest.mark.parametrize("commit", [True, False])
def test_a_kill_at_any_call_to_the_disk_leaves_a_transaction_whole(at: TransactingEndpoint, commit: bool) -> None:
    made = at.host.disk
    start(at, made.after_kill())
    calls = calls_of(at, lambda: transacts(at, [], commit=commit))
    assert calls > 10
    outcomes = set()
    for call in range(1, calls + 1):
        start(at, made.after_kill())
        disk, answered = at.host.disk, list[Any]()
        disk.crash_after = len(disk.calls) + call
        with pytest.raises(Crashed):
            transacts(at, answered, commit=commit)
        start(at, disk.after_kill())
        while (again := at.init()) is ErrorCode.CONCURRENT_TRANSACTIONS:
            pass
        seen = len(at.seen()) - 1, len(at.seen(OTHER)), at.committed(stable=True)
        assert seen in ((0, 0, -1), (1, 1, 7)), (call, seen)
        assert commit or seen == (0, 0, -1), call
        outcomes.add(seen)
        assert again > answered[0] if answered else again[0] >= 0, "who begins next has a later epoch, or id"
        for topic in ("orders", OTHER):
            assert at.log(topic).last_stable_offset == at.log(topic).log_end_offset
    assert outcomes == ({(0, 0, -1), (1, 1, 7)} if commit else {(0, 0, -1)})
    at.host = Host(dirs=("/a",), settings=SMALL, disk=made)


@pytest.mark.parametrize("commit", [True, False])
def test_where_writes_are_synced_an_ended_transaction_outlives_the_power_whenever_it_fails(
    at: TransactingEndpoint, commit: bool
) -> None:
    made, at.config = at.host.disk, replace(at.config, syncs=True)
    start(at, made.after_kill())
    transacts(at, [], commit=commit)
    ended = at.host.disk
    for lost in (1.0, 0.5):
        start(at, ended.after_power_failure(lost))
        seen = len(at.seen()) - 1, len(at.seen(OTHER)), at.committed(stable=True)
        assert seen == ((1, 1, 7) if commit else (0, 0, -1))
        for topic in ("orders", OTHER):
            assert at.log(topic).last_stable_offset == at.log(topic).log_end_offset
    at.config = replace(at.config, syncs=False)
    at.host = Host(dirs=("/a",), settings=SMALL, disk=made)
