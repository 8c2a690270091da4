"""What groups cost a coordinator: commits of offsets a second, and how long a rebalance takes, by clients that are sockets."""

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from asked_by_wire import Wire
from asked_endpoint import response_of
from endpoint_servers import cpu_seconds  # beside this file
from group_members import subscription

from tiering.endpoint.protocol.api_keys import (
    CREATE_TOPICS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    JOIN_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    Api,
)
from tiering.endpoint.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tiering.endpoint.protocol.requests import RequestHeader, write_request

GROUPS, COMMITS_S = 8, 2.0
MEMBERS = 100
TOPIC = "committed"
SESSION_MS = 45_000
COORDINATOR_S_MAX = 30
_ASSIGNMENT = bytes(100)
Servers = Mapping[str, tuple[str, int]]
"""Address and process by name."""


def commits(servers: Servers, rounds: int) -> None:
    """Each group commits the offset of one partition again and again, by a connection of its own."""
    print(f"Commits of offsets a second, of {GROUPS} groups that wait for each answer, and CPU of the server")
    for address, _ in servers.values():
        with closing(Wire(address)) as wire:
            wire.ask(CREATE_TOPICS, 2, CreateTopicsRequest((CreatableTopic(TOPIC, 1, 1),), 10_000))
            for number in range(GROUPS):
                find(wire, f"commits-{number}")
    best: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        for name, (address, process) in servers.items():
            known, found = best.get(name, (0.0, float("inf"))), committed(address, process)
            best[name] = max(known[0], found[0]), min(known[1], found[1])
    for name, (speed, cpu) in best.items():
        print(f"  {name:24} {speed:8,.0f} a second   {cpu * 1e6:6.0f} µs each", flush=True)


def committed(address: str, process: int) -> tuple[float, float]:
    """Commits a second, and the server's CPU seconds of each."""
    with ExitStack() as ending, DefaultSelector() as ready:
        for number in range(GROUPS):
            wire = ending.enter_context(closing(Wire(address)))
            frame = request(OFFSET_COMMIT, 7, commit(f"commits-{number}"))
            wire.send(frame)
            ready.register(wire, EVENT_READ, frame)
        count, cpu, began = 0, cpu_seconds(process), time.perf_counter()
        while time.perf_counter() - began < COMMITS_S:
            for key, _ in ready.select():
                wire = key.fileobj
                assert isinstance(wire, Wire)
                of = response_of(OFFSET_COMMIT, 7, wire.receive()).topics[0].partitions[0]
                assert of.error_code == 0, f"error {of.error_code}"
                count += 1
                wire.send(key.data)
        return count / (time.perf_counter() - began), (cpu_seconds(process) - cpu) / count


def commit(group: str) -> OffsetCommitRequest:
    """Of a consumer without a membership."""
    partitions = (OffsetCommitRequestPartition(0, 1, committed_metadata=""),)
    return OffsetCommitRequest(group, topics=(OffsetCommitRequestTopic(TOPIC, partitions=partitions),))


def rebalances(servers: Servers, rounds: int) -> None:
    """All members of a group join again, until each has its assignment; the best of some."""
    print(f"A rebalance of {MEMBERS} members, classic: ms until all that join have their assignments, and CPU of the server")
    for name, (address, process) in servers.items():
        with ExitStack() as ending:
            group = Group(f"rebalanced-{name.split()[0]}", address, ending)
            group.form()
            found = list[tuple[float, float]]()
            for _ in range(rounds):
                cpu, began = cpu_seconds(process), time.perf_counter()
                group.rebalance()
                found.append((time.perf_counter() - began, cpu_seconds(process) - cpu))
        seconds, cpu = map(min, zip(*found, strict=True))
        print(f"  {name:24} {seconds * 1e3:8.0f} ms   {cpu * 1e3:6.0f} ms", flush=True)


class Group:
    """Members of one group, each with a connection."""

    def __init__(self, name: str, address: str, ending: ExitStack) -> None:
        self._name = name
        self._wires = [ending.enter_context(closing(Wire(address))) for _ in range(MEMBERS)]
        self._ids = [""] * MEMBERS
        self._rounds = 0

    def form(self) -> None:
        """The first member is the leader, who joins again when the others have come."""
        find(self._wires[0], self._name)
        self._ids[0] = self._wires[0].ask(JOIN_GROUP, 3, self._join(0)).member_id
        self._send(JOIN_GROUP, 3, {number: self._join(number) for number in range(1, MEMBERS)})
        while len(self._wires[0].ask(DESCRIBE_GROUPS, 0, DescribeGroupsRequest((self._name,))).groups[0].members) < MEMBERS:
            time.sleep(0.01)
        self._wires[0].send(request(JOIN_GROUP, 3, self._join(0)))
        self._assigned()

    def rebalance(self) -> None:
        """All join with another subscription, or those before the leader would be told that nothing has changed."""
        self._rounds += 1
        self._send(JOIN_GROUP, 3, {number: self._join(number) for number in range(MEMBERS)})
        self._assigned()

    def _assigned(self) -> None:
        joined = self._answers(JOIN_GROUP, 3)
        self._ids = [one.member_id for one in joined]
        assert {(one.error_code, one.leader) for one in joined} == {(0, self._ids[0])}
        assert len(joined[0].members) == MEMBERS
        of_all = tuple(SyncGroupRequestAssignment(one, _ASSIGNMENT) for one in self._ids)
        generation = joined[0].generation_id
        asked = {
            number: SyncGroupRequest(self._name, generation, one, assignments=() if number else of_all)
            for number, one in enumerate(self._ids)
        }
        self._send(SYNC_GROUP, 2, asked)
        assert {(one.error_code, one.assignment) for one in self._answers(SYNC_GROUP, 2)} == {(0, _ASSIGNMENT)}

    def _join(self, number: int) -> JoinGroupRequest:
        protocols = (JoinGroupRequestProtocol("range", subscription(f"{TOPIC}-{self._rounds}")),)
        return JoinGroupRequest(self._name, SESSION_MS, 60_000, self._ids[number], None, "consumer", protocols)

    def _send(self, api: Api, version: int, asked: Mapping[int, Any]) -> None:
        for number, message in asked.items():
            self._wires[number].send(request(api, version, message))

    def _answers(self, api: Api, version: int) -> list[Any]:
        return [response_of(api, version, wire.receive()) for wire in self._wires]


def request(api: Api, version: int, message: object) -> bytes:
    """A frame."""
    return write_request(RequestHeader(api, version, 99, "bench"), message)


def find(wire: Wire, group: str) -> None:
    """Waits until the group has a coordinator, which makes its topic first."""
    deadline = time.monotonic() + COORDINATOR_S_MAX
    while wire.ask(FIND_COORDINATOR, 1, FindCoordinatorRequest(group)).error_code or not is_loaded(wire, group):
        assert time.monotonic() < deadline, f"{group} has no coordinator"
        time.sleep(0.1)


def is_loaded(wire: Wire, group: str) -> bool:
    """Whether it takes commits: a topic that is not there is another error."""
    found = wire.ask(OFFSET_COMMIT, 7, commit(group)).topics[0].partitions[0].error_code
    return found in (0, 3)
