"""Any life of a consumer group: members of all kinds of subscriptions come, are heard of, leave, fail and come back, topics come
and grow, answers are lost, and the process restarts."""

from dataclasses import dataclass, replace
from typing import Any

import hypothesis.strategies as st
from consumer_members import REBALANCE_MS, Consumer, Consumers
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.protocol.errors import ErrorCode

ONE = st.integers(0, 9)
SUBSCRIPTIONS = st.sampled_from((("orders",), ("orders", "payments"), ("payments", "late"), "orders|late", ".*"))
GONE = (
    *(ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID),
    *(ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_MAX_SIZE_REACHED),
)
STEP_MS = 11_000


@dataclass
class Client:
    """Who believes to be a member, and says all that there is to say each time, as clients do after an answer was lost."""

    consumer: Consumer
    instance: str | None
    subscribed: tuple[str, ...] | str

    @property
    def says(self) -> dict[str, Any]:
        is_regex = isinstance(self.subscribed, str)
        return {
            "instance_id": self.instance,
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": () if is_regex else self.subscribed,
            "subscribed_topic_regex": self.subscribed if is_regex else "",
        }


class ConsumerGroupLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.group = Consumers({"orders": 3, "payments": 2}, consumer_group_max_size=4)
        self.clients: list[Client] = []
        self.silent: list[Client] = []
        """Those that are not heard of any more, and may still read what they have as long as they are members."""
        self.epoch = 0
        self.count = 0

    def one(self, number: int) -> Client:
        return self.clients[number % len(self.clients)]

    def heard(self, client: Client) -> None:
        """What it is told to give up it gives up, and says so the next time."""
        self.group.beat(client.consumer, **client.says)
        if client.consumer.code in GONE:
            self.clients.remove(client)
        else:
            assert client.consumer.code == 0, client.consumer.said

    @property
    def known(self) -> ConsumerGroup | None:
        return self.group.groups._groups.consumers.get("readers")

    @rule(subscribed=SUBSCRIPTIONS, instance=st.sampled_from((None, None, "a")))
    def join(self, subscribed: tuple[str, ...] | str, instance: str | None) -> None:
        self.count += 1
        client = Client(Consumer(f"member {self.count}"), instance, subscribed)
        self.group.beat(client.consumer, **client.says)
        if client.consumer.code == 0:
            self.clients.append(client)
        else:
            assert client.consumer.code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.UNRELEASED_INSTANCE_ID)

    @precondition(lambda self: self.clients)
    @rule(number=ONE)
    def beat(self, number: int) -> None:
        self.heard(self.one(number))

    @precondition(lambda self: self.clients)
    @rule(number=ONE)
    def lose_an_answer(self, number: int) -> None:
        client = self.one(number)
        self.group.beat(replace(client.consumer), **client.says)

    @precondition(lambda self: self.clients)
    @rule(number=ONE)
    def leave(self, number: int) -> None:
        client = self.one(number)
        self.clients.remove(client)
        self.group.gone(client.consumer, -2 if client.instance and number % 2 else -1, instance_id=client.instance)

    @precondition(lambda self: self.clients)
    @rule(number=ONE)
    def fail(self, number: int) -> None:
        self.silent.append(self.clients.pop(number % len(self.clients)))

    @precondition(lambda self: self.clients)
    @rule(subscribed=SUBSCRIPTIONS, number=ONE)
    def subscribe(self, subscribed: tuple[str, ...] | str, number: int) -> None:
        client = self.one(number)
        client.subscribed = subscribed
        self.heard(client)

    @rule(topic=st.sampled_from(("orders", "late")))
    def topic_grows(self, topic: str) -> None:
        self.group.topics.made[topic] = self.group.topics.made.get(topic, 0) + 1

    @rule(ms=st.sampled_from((1_000, STEP_MS, REBALANCE_MS)))
    def later(self, ms: int) -> None:
        self.group.later(ms)

    @rule()
    def restart(self) -> None:
        before = self.known
        self.group.started()
        after = self.known
        assert (after is None) == (before is None)
        if before is not None and after is not None:
            volatile = {"looked_ms": None, "resolved_of": None}
            assert replace(after, **volatile) == replace(before, **volatile)

    @invariant()
    def nobody_shares_a_partition(self) -> None:
        if self.known is not None:
            members = self.known.members.values()
            held = [(t, n) for one in members for of in (one.assigned, one.revoked) for t, epochs in of.items() for n in epochs]
            assert len(held) == len(set(held)) == len(self.known.owners)
            targets = [(t, n) for of in self.known.targets.values() for t, numbers in of.items() for n in numbers]
            assert len(targets) == len(set(targets))

    @invariant()
    def nobody_reads_what_another_member_reads(self) -> None:
        if self.known is not None:
            members = (one.consumer for one in (*self.clients, *self.silent) if one.consumer.member_id in self.known.members)
            read = [(topic, number) for one in members for topic, numbers in one.has.items() for number in numbers]
            assert len(read) == len(set(read))

    @invariant()
    def epochs_grow(self) -> None:
        if self.known is not None:
            assert self.known.epoch >= self.epoch
            assert max((one.epoch for one in self.known.members.values()), default=0) <= self.known.assignment_epoch
            assert self.known.assignment_epoch <= self.known.epoch
            self.epoch = self.known.epoch

    def teardown(self) -> None:
        """Members that go on being heard of have everything soon, each partition once."""
        for _ in range(6):
            self.group.later(STEP_MS)
            for client in [one for _ in range(4) for one in self.clients]:
                if client in self.clients:
                    self.heard(client)
        assert self.group.said == []
        if self.known is None or not self.clients:
            return
        assert self.known.state == "Stable"
        assert set(self.known.members) == {client.consumer.member_id for client in self.clients}
        held = [(t, n) for one in self.clients for t, numbers in one.consumer.has.items() for n in numbers]
        made = self.group.topics.made
        assert sorted(held) == sorted((t, n) for t in self.known.subscribed for n in range(made.get(t, 0)))


TestConsumerGroupLife = ConsumerGroupLife.TestCase
TestConsumerGroupLife.settings = settings(max_examples=25, stateful_step_count=30, deadline=None, derandomize=True)
