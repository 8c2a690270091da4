"""Any life of a group whose members use both protocols: they come, are heard of, leave and fail, the group changes its type as
often as that follows, and the process restarts."""

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from consumer_members import REBALANCE_MS, Consumer, Has
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from mixed_members import ClassicConsumer, MixedMembers, assigned, assignment

from tiering.endpoint.protocol.errors import ErrorCode

ONE = st.integers(0, 9)
ALL = frozenset(range(6))
STEP_MS = 4_000
SIZE_MAX = 4
"""Clients at once."""
JOIN_AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


@dataclass
class New:
    """A client of KIP-848, which says all that there is to say each time."""

    consumer: Consumer

    @property
    def has(self) -> Has:
        return self.consumer.has

    def goes_on(self, group: MixedMembers) -> bool:
        said = {"rebalance_timeout_ms": REBALANCE_MS, "subscribed_topic_names": ("orders",), "subscribed_topic_regex": ""}
        group.beat(self.consumer, **said)
        return self.consumer.code == 0

    def leaves(self, group: MixedMembers) -> None:
        group.gone(self.consumer)


@dataclass
class Old:
    """A client of the classic protocol. It assigns all partitions in turn if it leads."""

    consumer: ClassicConsumer
    waits: "Future[Any] | None" = None
    has: Has = field(default_factory=dict)

    def goes_on(self, group: MixedMembers) -> bool:
        """One step: it takes an answer that has come, or is heard of; False if it is no member."""
        if self.waits is None:
            code = group.beats(self.consumer)
            return code == 0 or (code in JOIN_AGAIN and self.joins(group))
        if not self.waits.done():
            return True
        told, self.waits = self.waits.result(0), None
        if told.error_code:
            return told.error_code in JOIN_AGAIN and self.joins(group)
        if hasattr(told, "assignment"):
            self.has = assigned(told.assignment) if told.assignment else {}
            return True
        return self.syncs(group, told)

    def joins(self, group: MixedMembers) -> bool:
        """It has all of them still if it is cooperative, and says so."""
        self.consumer.has = self.has = self.has if self.consumer.is_cooperative else {}
        self.waits = group.join(self.consumer.member_id, self.consumer.offers)
        return True

    def syncs(self, group: MixedMembers, told: Any) -> bool:
        self.consumer.generation, given = told.generation_id, {}
        if told.leader == self.consumer.member_id:
            ids = [one.member_id for one in told.members]
            shares = {one: {n for n in ALL if n % len(ids) == at} for at, one in enumerate(ids)}
            given = {one: assignment(orders=of) for one, of in shares.items()}
        self.waits = group.sync(self.consumer.member_id, told.generation_id, given)
        return True

    def leaves(self, group: MixedMembers) -> None:
        group.leave(self.consumer.member_id)


class MixedGroupLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.group = MixedMembers()
        self.clients: list[New | Old] = []
        self.count = 0

    def one(self, number: int) -> New | Old:
        return self.clients[number % len(self.clients)]

    def goes_on(self, client: New | Old) -> None:
        if not client.goes_on(self.group):
            self.clients.remove(client)
            self.become_eager()

    @precondition(lambda self: len(self.clients) < SIZE_MAX)
    @rule()
    def consumer_comes(self) -> None:
        self.count += 1
        client = New(Consumer(f"member {self.count}"))
        self.clients.append(client)
        self.goes_on(client)

    @precondition(lambda self: len(self.clients) < SIZE_MAX)
    @rule(is_cooperative=st.booleans())
    def classic_one_comes(self, is_cooperative: bool) -> None:
        told = self.group.join("", ClassicConsumer("").offers).result(0)
        assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
        client = Old(ClassicConsumer(told.member_id, is_cooperative=is_cooperative and self.has_consumers))
        client.joins(self.group)
        self.clients.append(client)

    @property
    def has_consumers(self) -> bool:
        """A leader would have to assign in two steps to cooperative members, and these here do not."""
        return any(isinstance(one, New) for one in self.clients)

    @precondition(lambda self: self.clients)
    @rule(number=ONE)
    def is_heard_of(self, number: int) -> None:
        self.goes_on(self.one(number))

    @rule()
    def all_go_on(self) -> None:
        self.group.later(STEP_MS)
        for client in [one for _ in range(3) for one in self.clients]:
            if client in self.clients:
                self.goes_on(client)

    @precondition(lambda self: self.clients)
    @rule(number=ONE)
    def leaves(self, number: int) -> None:
        client = self.one(number)
        self.clients.remove(client)
        client.leaves(self.group)
        self.become_eager()

    @precondition(lambda self: self.clients)
    @rule(number=ONE)
    def fails(self, number: int) -> None:
        self.clients.remove(self.one(number))
        self.become_eager()

    def become_eager(self) -> None:
        for one in self.clients if not self.has_consumers else ():
            if isinstance(one, Old):
                one.consumer.is_cooperative = False

    @rule(ms=st.sampled_from((100, STEP_MS)))
    def later(self, ms: int) -> None:
        self.group.later(ms)

    @rule()
    def restarts(self) -> None:
        before = self.group.groups._groups.consumers.get("readers")
        self.group.started()
        after = self.group.groups._groups.consumers.get("readers")
        assert (None if after is None else after.members) == (None if before is None else before.members)
        for one in self.clients:
            if isinstance(one, Old) and one.waits is not None:
                one.joins(self.group)  # its connection was closed

    @invariant()
    def nobody_shares_a_partition(self) -> None:
        found = self.group.groups._groups.consumers.get("readers")
        if found is not None:
            members = found.members.values()
            held = [(t, n) for one in members for of in (one.assigned, one.revoked) for t, epochs in of.items() for n in epochs]
            assert len(held) == len(set(held)) == len(found.owners)

    @invariant()
    def nobody_reads_what_another_one_reads(self) -> None:
        read = [number for one in self.clients for number in one.has.get("orders", ())]
        assert len(read) == len(set(read)), [(one, one.has) for one in self.clients]

    def teardown(self) -> None:
        """Clients that go on have everything soon, each partition once, and the group has the type that they need."""
        for _ in range(24):
            self.all_go_on()
        assert self.group.said == []
        if self.clients:
            assert self.group.group_type() == ("consumer Stable" if self.has_consumers else "classic Stable")
            assert sorted(number for one in self.clients for number in one.has.get("orders", ())) == sorted(ALL), self.clients


TestMixedGroupLife = MixedGroupLife.TestCase
TestMixedGroupLife.settings = settings(max_examples=25, stateful_step_count=30, deadline=None, derandomize=True)
