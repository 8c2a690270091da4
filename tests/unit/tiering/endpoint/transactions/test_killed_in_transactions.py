"""A process that is killed at any moment of a transaction: what comes after it sees all of the transaction or nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from local_tiers import Host
from simulated_disk import Crashed, SimulatedDisk
from transacting_endpoint import SMALL, V1, TransactingEndpoint

from tiering.endpoint.protocol.errors import ErrorCode

OTHER = "more-0"
NONE, OUT_OF_ORDER = ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
END_V1 = 4
"""The last version of EndTxn that keeps the epoch."""


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


@pytest.mark.parametrize("commit", [True, False])
def test_a_sequence_number_of_an_ended_transaction_is_its_duplicate_while_the_epoch_is_the_same(
    at: TransactingEndpoint, commit: bool
) -> None:
    """As a broker answers: a client that numbers another record so loses it, and hears of it by the number after it."""
    start(at, at.host.disk.after_kill())
    producer, begin = at.init(), at.log().log_end_offset
    at.add(producer)
    at.write(producer, 0, version=V1)
    at.end(producer, commit=commit, version=END_V1)
    start(at, at.host.disk.after_kill())
    at.add(producer)
    assert [at.write(producer, sequence, version=V1) for sequence in (0, 1)] == [NONE, OUT_OF_ORDER]
    assert at.log().log_end_offset == begin + 2  # with the marker
    producer = at.end(producer, commit=True)
    assert at.write(producer, 0) is NONE
    assert at.log().log_end_offset == begin + 4
    at.end(producer, commit=True)
