"""Requests of the members of a group in the same order to a broker and to our coordinator: who is answered what, and when.

A request names a member by `@0`, `@1` and so on, in the order in which ids were given, and a generation by its distance from the
last one, from CURRENT on. In answers, ids are replaced by these names.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import count
from typing import Any

from asked_by_wire import CORRELATION_ID, Wire
from asked_endpoint import Endpoint, response_of
from compared_answers import Compared, Difference, differences

from local_log.errors import Corrupt
from tiering.endpoint.apis.kafka_apis import Later
from tiering.endpoint.coordinator.consumer_protocol import read_assignment, version_of, write_assignment
from tiering.endpoint.protocol.api_keys import DESCRIBE_GROUPS, Api
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupResponse
from tiering.endpoint.protocol.messages.list_groups import ListGroupsResponse
from tiering.endpoint.protocol.requests import RequestHeader, write_request

CURRENT = 1_000_000
GROUP, OTHER = "@group", "@other"
"""Stand for the group and another one, whose names nobody had before."""
LAST = "@last"
"""Stands for the member whose id was given last."""
_PREFIX = "life-"
_PATIENCE_S = 5.0
_DESCRIBED = 5
_ID = re.compile(r".*-[0-9a-zA-Z-]{22,}")
_ID_LENGTH = 22
"""Of an id in a consumer group, which has nothing before it; the members that name themselves have shorter ones."""

Step = tuple[Api, int, Any]
"""An API, a version and a request."""
Found = list[tuple[Compared, Difference]]


@dataclass
class Life:
    """A group on one side: the ids of its members, its last generation or epoch, the answers to steps, and who waits for one."""

    ids: list[str] = field(default_factory=list)
    generation: int = 0
    answers: dict[int, Any] = field(default_factory=dict)
    waiting: dict[int, Any] = field(default_factory=dict)

    def asked(self, request: Any, group: str) -> Any:
        """The request with this side's ids and generation."""

        def said(value: Any) -> Any:
            if value in (GROUP, OTHER):
                return group if value == GROUP else f"{group}-other"
            if value == LAST and self.ids:
                return self.ids[-1]
            if isinstance(value, str) and re.fullmatch("@[0-9]", value) and int(value[1:]) < len(self.ids):
                return self.ids[int(value[1:])]
            is_generation = type(value) is int and abs(value - CURRENT) < 10
            return self.generation + value - CURRENT if is_generation else value

        return mapped(request, said)

    def answered(self, number: int, answer: Any) -> None:
        """Keeps an answer, and the id and the generation that it tells."""
        del self.waiting[number]
        self.answers[number] = answer
        if isinstance(answer, ConsumerGroupHeartbeatResponse):
            self.generation = max(self.generation, answer.member_epoch)
        if isinstance(answer, JoinGroupResponse):
            self.generation = max(self.generation, answer.generation_id)
            if len(answer.member_id) >= _ID_LENGTH and answer.member_id not in self.ids:
                self.ids.append(answer.member_id)

    def named(self, answer: Any) -> Any:
        """The answer with names for ids; one that no answer has told yet is `@`. Topics of assignments are in order."""

        def name(value: Any) -> Any:
            if isinstance(value, bytes):
                return _sorted(value)
            if isinstance(value, str) and value in self.ids:
                return f"@{self.ids.index(value)}"
            return "@" if isinstance(value, str) and _ID.fullmatch(value) else value

        return mapped(answer, name)


def _sorted(data: bytes) -> bytes:
    """An assignment of a consumer with its topics in order, anything else as it is: a broker's order is that of a hash table."""
    try:
        found = read_assignment(data)
        return write_assignment({one.topic: one.partitions for one in found.assigned_partitions}, version_of(data))
    except Corrupt:
        return data


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A message with every value in it changed."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: mapped(getattr(value, one.name), change) for one in fields(value)})
    return tuple(mapped(one, change) for one in value) if isinstance(value, tuple) else change(value)


@dataclass
class ComparedGroups:
    """A broker and an endpoint whose groups live the same lives."""

    address: str
    endpoint: Endpoint
    _free: list[Wire] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)

    def compare(self, steps: Sequence[Step], settle_s: float = 0.003) -> Found:
        """What differs first. A broker has several threads: a request that waits has `settle_s` to arrive before the next one."""
        group, theirs, ours = f"{_PREFIX}{next(self._numbers)}", Life(), Life()
        try:
            for number, (api, version, request) in enumerate(steps):
                self._ask_us(number, (api, version, ours.asked(request, group)), ours)
                self._ask_broker(number, (api, version, theirs.asked(request, group)), theirs)
                self._receive(theirs, set(ours.answers), settle_s if number in ours.waiting else 0)
                lived = steps[: number + 1]
                found = [*_answers(group, lived, theirs, ours)] or self._states(group, lived, theirs, ours)
                if found:
                    return found
            return []
        finally:
            for _, wire in theirs.waiting.values():
                wire.close()
                self._free.append(wire)

    def close(self) -> None:
        """Closes all connections."""
        for wire in self._free:
            wire.close()

    def _ask_us(self, number: int, step: Step, life: Life) -> None:
        life.waiting[number] = self.endpoint.ask(*step)
        self.endpoint.clock.now += 1  # what a broker does after 0 ms is done after 1 here
        self.endpoint.context.groups.tick()
        for at, one in tuple(life.waiting.items()):
            if not isinstance(one, Later):
                life.answered(at, one)
            elif one.response.done():
                life.answered(at, self.endpoint.answer_of(one))

    def _ask_broker(self, number: int, step: Step, life: Life) -> None:
        api, version, request = step
        wire = self._free.pop() if self._free else Wire(self.address)
        wire.send(write_request(RequestHeader(api, version, CORRELATION_ID, "test"), request))
        life.waiting[number] = step, wire

    def _receive(self, life: Life, expected: set[int], settle_s: float) -> None:
        time.sleep(settle_s)
        for at, ((api, version, _), wire) in tuple(life.waiting.items()):
            if wire.has_answer(_PATIENCE_S if at in expected else 0):
                data = wire.receive()
                life.answered(at, None if data is None else response_of(api, version, data))
                self._free.append(wire)

    def _states(self, group: str, steps: Sequence[Step], theirs: Life, ours: Life) -> Found:
        """What differs between the groups as they are described; a broker may take its time."""
        asked = DescribeGroupsRequest((group,))
        described = ours.named(self.endpoint.ask(DESCRIBE_GROUPS, _DESCRIBED, asked))
        wire, deadline = self._free.pop() if self._free else Wire(self.address), time.monotonic() + 1
        while True:
            told = theirs.named(wire.ask(DESCRIBE_GROUPS, _DESCRIBED, asked))
            compared = Compared(DESCRIBE_GROUPS, _DESCRIBED, asked, told, described, before=tuple(one for _, _, one in steps))
            found = [(compared, one) for one in differences(told, described) if not one.path.endswith("[order]")]
            if not found or time.monotonic() > deadline:
                self._free.append(wire)
                return found


def without_lives(answer: Any) -> Any:
    """A list of groups without those that were made here; any other answer as it is."""
    return _listed(answer, lambda name: not name.startswith(_PREFIX))


def _listed(answer: Any, keeps: Callable[[str], bool]) -> Any:
    if not isinstance(answer, ListGroupsResponse):
        return answer
    return replace(answer, groups=tuple(one for one in answer.groups if keeps(one.group_id)))


def _answers(group: str, steps: Sequence[Step], theirs: Life, ours: Life) -> Iterator[tuple[Compared, Difference]]:
    for at in sorted(theirs.answers.keys() | ours.answers.keys()):
        told, answer = theirs.named(theirs.answers.pop(at, None)), ours.named(ours.answers.pop(at, None))
        told, answer = (_listed(one, lambda name: name == group) for one in (told, answer))
        compared = Compared(*steps[at], told, answer, before=tuple(request for _, _, request in steps))
        yield from ((compared, one) for one in differences(told, answer) if not one.path.endswith("[order]"))
