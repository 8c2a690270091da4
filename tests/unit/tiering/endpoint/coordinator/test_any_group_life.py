"""Any life of a group: members join, sync, are heard of, leave, start anew and fail, in any order, and the process restarts."""

from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
from group_members import RANGE, REBALANCE_MS, SESSION_MS, Members, subscription
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.protocol.errors import ErrorCode

OFFERS = (RANGE, {"range": subscription("payments")}, {"sticky": b"", **RANGE}, {"sticky": b""})
ANY = st.integers(0, 4)
"""One of those that are there."""


class GroupLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.members = Members(group_max_size=4)
        self.ids: list[tuple[str, str | None]] = []
        """Every id that was given, with the name of a static member."""
        self.waiting: list[Future[Any]] = []
        self.generation = 0
        self.committed: int | None = None

    def one(self, number: int) -> tuple[str, str | None]:
        return self.ids[-1 - number % min(5, len(self.ids))] if self.ids else ("nobody", None)

    def asked(self, answer: "Future[Any]") -> None:
        self.waiting.append(answer)
        self.learn()

    def learn(self) -> None:
        """What clients are told."""
        for answer in [one for one in self.waiting if one.done()]:
            self.waiting.remove(answer)
            response = answer.result()
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                generation = getattr(response, "generation_id", -1)
                assert generation == -1 or generation >= self.generation, "generations grow"
                self.generation = max(self.generation, generation)
            given = getattr(response, "member_id", "")
            if given and all(given != one for one, _ in self.ids):
                instance = next((one.group_instance_id for one in self.described.members if one.member_id == given), None)
                self.ids.append((given, instance))

    @property
    def described(self) -> Any:
        return self.members.described()

    @rule(offer=st.sampled_from(OFFERS), instance=st.sampled_from((None, None, "a", "b")), version=st.sampled_from((3, 9)))
    def join(self, offer: dict[str, bytes], instance: str | None, version: int) -> None:
        self.asked(self.members.join("", offer, instance_id=instance, version=version))

    @rule(number=ANY, offer=st.sampled_from(OFFERS[:2]))
    def join_again(self, number: int, offer: dict[str, bytes]) -> None:
        member_id, instance = self.one(number)
        self.asked(self.members.join(member_id, offer, instance_id=instance))

    @rule(number=ANY, stale=st.booleans())
    def sync(self, number: int, stale: bool) -> None:
        member_id, instance = self.one(number)
        assigned = {one: one.encode() for one, _ in self.ids}
        self.asked(self.members.sync(member_id, self.generation - stale, assigned, group_instance_id=instance))

    @rule(number=ANY)
    def beat(self, number: int) -> None:
        member_id, instance = self.one(number)
        before = {one.member_id for one in self.described.members}
        found = self.members.heartbeat(member_id, self.generation, instance)
        assert found != ErrorCode.NONE or member_id in before

    @rule(number=ANY)
    def leave(self, number: int) -> None:
        with suppress(GroupError):  # there is no such group
            self.members.leave(self.one(number))
        self.learn()

    @rule(number=ANY, offset=st.integers(0, 99))
    def commit(self, number: int, offset: int) -> None:
        with suppress(GroupError):
            self.members.commit(offset, generation_id_or_member_epoch=self.generation, member_id=self.one(number)[0])
            self.committed = offset

    @rule(ms=st.sampled_from((1, 3_000, SESSION_MS, REBALANCE_MS)))
    def pass_time(self, ms: int) -> None:
        self.members.later(ms)
        self.learn()

    @rule()
    def restart(self) -> None:
        before = self.described
        self.members.groups.stop()
        self.learn()
        assert not self.waiting, "whoever waits is answered when it stops"
        self.members.started()
        self.generation = 0  # what was not assigned is not kept
        if before.group_state in ("Stable", "Empty"):
            after = self.described
            assert (after.group_state, after.protocol_type) == (before.group_state, before.protocol_type)
            assert {one.member_id: one for one in after.members} == {one.member_id: one for one in before.members}

    @rule()
    def fail_everybody(self) -> None:
        """Nobody is heard of any more."""
        self.members.later(10 * REBALANCE_MS)
        self.learn()
        assert not self.waiting, "nobody waits for ever"
        assert self.described.members == ()
        self.generation = 0  # a group without members and offsets is forgotten after a while

    @invariant()
    def the_group_makes_sense(self) -> None:
        group = self.members.groups._groups.groups.get("readers")
        if group is None:
            return
        assert (group.leader_id in group.members) if group.members else group.leader_id is None
        assert set(group.static_members.values()) <= set(group.members)
        assert len(group.members) <= 4 or group.state == "PreparingRebalance"
        if group.state in ("Stable", "CompletingRebalance"):
            assert all(group.protocol in {p.name for p in one.protocols} for one in group.members.values())
            assert all(one.awaiting_join is None for one in group.members.values())
        if group.state == "Stable":
            assert all(one.awaiting_sync is None for one in group.members.values())
        assert not (group.state == "Empty" and group.members)
        assert self.members.offsets() == ({} if self.committed is None else {("orders", 0): self.committed})


TestGroupLife = GroupLife.TestCase
TestGroupLife.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
