"""What groups of KIP-848 cost a coordinator: how long it takes until all members have their partitions."""

import time
from contextlib import ExitStack, closing
from itertools import count

from asked_by_wire import Wire
from asked_endpoint import response_of
from endpoint_servers import cpu_seconds  # beside this file
from group_loads import MEMBERS, Servers, find, request  # beside this file

from tiering.endpoint.protocol.api_keys import CONSUMER_GROUP_HEARTBEAT, CREATE_TOPICS
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tiering.endpoint.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

TOPIC = "assigned"
SETTLED_S_MAX = 60
_numbers = count()


def assignments(servers: Servers, rounds: int) -> None:
    """Groups form one after the other; the best of some. Of both `group.consumer.assignment.interval.ms` has to be 0."""
    print(f"{MEMBERS} members join a KIP-848 group: ms until all have their partitions, heartbeats, and CPU of the server")
    for name, (address, process) in servers.items():
        found = list[tuple[float, int, float]]()
        with closing(Wire(address)) as wire:
            wire.ask(CREATE_TOPICS, 2, CreateTopicsRequest((CreatableTopic(TOPIC, MEMBERS, 1),), 10_000))
            find(wire, "assigned")
        for _ in range(rounds):
            with ExitStack() as ending:
                group = ConsumerGroup(f"assigned-{next(_numbers)}", address, ending)
                cpu, began = cpu_seconds(process), time.perf_counter()
                asked = group.settle()
                found.append((time.perf_counter() - began, asked, cpu_seconds(process) - cpu))
        seconds, asked, cpu = map(min, zip(*found, strict=True))
        print(f"  {name:24} {seconds * 1e3:8.0f} ms   {asked:6} {cpu * 1e3:8.0f} ms", flush=True)


class ConsumerGroup:
    """Members of one group, each with a connection, which are heard of one after the other without a pause."""

    def __init__(self, name: str, address: str, ending: ExitStack) -> None:
        self._name = name
        self._wires = [ending.enter_context(closing(Wire(address))) for _ in range(MEMBERS)]
        self._epochs = [0] * MEMBERS
        self._has: list[tuple[TopicPartitions, ...]] = [()] * MEMBERS
        self._said: list[tuple[TopicPartitions, ...] | None] = [None] * MEMBERS

    def settle(self) -> int:
        """Until each member has its partition, and all are of one epoch; how many heartbeats that took."""
        deadline, asked = time.monotonic() + SETTLED_S_MAX, 0
        while not self._is_settled():
            assert time.monotonic() < deadline, f"{self._name} is not settled"
            for number, wire in enumerate(self._wires):
                wire.send(request(CONSUMER_GROUP_HEARTBEAT, 1, self._heartbeat(number)))
            for number, wire in enumerate(self._wires):
                self._told(number, response_of(CONSUMER_GROUP_HEARTBEAT, 1, wire.receive()))
            asked += MEMBERS
        return asked

    def _is_settled(self) -> bool:
        owned = [partition for has in self._has for of in has for partition in of.partitions]
        return sorted(owned) == [*range(MEMBERS)] and len(set(self._epochs)) == 1

    def _heartbeat(self, number: int) -> ConsumerGroupHeartbeatRequest:
        """A member says what it has when that has changed, since this is also how it confirms it."""
        if not self._epochs[number]:
            return ConsumerGroupHeartbeatRequest(
                self._name, f"member-{number}", 0, None, None, 60_000, subscribed_topic_names=(TOPIC,), topic_partitions=()
            )
        said, self._said[number] = self._said[number], self._has[number]
        changed = None if said == self._has[number] else self._has[number]
        return ConsumerGroupHeartbeatRequest(self._name, f"member-{number}", self._epochs[number], topic_partitions=changed)

    def _told(self, number: int, told: ConsumerGroupHeartbeatResponse) -> None:
        assert not told.error_code, f"error {told.error_code}: {told.error_message}"
        self._epochs[number] = told.member_epoch
        if told.assignment is not None:
            self._has[number] = told.assignment.topic_partitions
