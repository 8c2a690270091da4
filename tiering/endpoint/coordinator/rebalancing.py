"""How a group comes from one generation to the next: who is waited for, how long, and who is told what.

Answers to requests that wait are collected in `answers`. Times that pass are tasks of `timers`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from remote.clock import Time
from tiering.endpoint.coordinator.classic_group import ClassicGroup, Member, Waiter
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_states import COMPLETING, DEAD, EMPTY, PREPARING, STABLE
from tiering.endpoint.coordinator.journal import Journal
from tiering.endpoint.coordinator.record_messages import GroupMetadataValue, MemberMetadata
from tiering.endpoint.coordinator.records import Record, group_metadata_record
from tiering.endpoint.coordinator.timers import Task, Timers
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from tiering.endpoint.protocol.messages.sync_group import SyncGroupResponse

NO_ASSIGNMENT: Final = b""
NO_TIME: Final = -1


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request that was waiting, or was just handed in."""

    waiter: Waiter
    response: object


@dataclass(slots=True)
class Rebalancing:
    """Rebalances of all groups."""

    config: GroupCoordinatorConfig
    journal: Journal | None
    clock: Time
    timers: Timers = field(init=False)
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.timers = Timers(self.clock)

    def answer(self, waiter: Waiter, response: object) -> None:
        """Answers a request."""
        self.answers.append(Answer(waiter, response))

    def refuse_join(self, waiter: Waiter, code: ErrorCode, member_id: str = "") -> None:
        """Answers a join with an error."""
        self.answer(waiter, JoinGroupResponse(error_code=code, protocol_name=None, member_id=member_id))

    def begin_or_complete(self, group: ClassicGroup) -> None:
        """Somebody came, left or changed: a rebalance begins, or the one that was going on may be complete."""
        if group.can_rebalance:
            self.begin(group)
        else:
            self.complete_if_all_joined(group)

    def begin(self, group: ClassicGroup) -> None:
        """Begins a rebalance: members are told to join again. The first one of a group waits for more members."""
        if group.state is COMPLETING:
            self.reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        self.timers.cancel(_sync(group))
        is_first = group.state is EMPTY
        group.transition_to(PREPARING, self.clock.now_ms())
        if is_first:
            delay_ms = self.config.group_initial_rebalance_delay_ms
            self._wait_for_more(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        elif group.has_all_joined:
            self.complete(group)
        else:
            self._wait_for_joins(group)

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        """Ends the joining of members if all are there, unless the first rebalance still waits for more."""
        if group.state is PREPARING and group.previous is not EMPTY and group.has_all_joined:
            self.complete(group)

    def complete(self, group: ClassicGroup) -> None:
        """Ends the joining: members that did not join are out, unless they are static; the others are told of each other."""
        self.timers.cancel(_join(group))
        if group.state is not PREPARING:
            return
        for member in [one for one in group.members.values() if one.awaiting_join is None and one.instance_id is None]:
            group.remove(member.member_id)
            self.timers.cancel(_heartbeat(group, member.member_id))
        if not group.elect_joined_leader() and group.members:
            self._wait_for_joins(group)  # until session timeouts remove the static members that are left
            return
        group.next_generation(self.clock.now_ms())
        if not group.members:
            self._write_if_possible(group)
            return
        for member in group.members.values():
            self.complete_join(member, current_generation(group, member.member_id))
            self.expect_heartbeat(group, member)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        generation = group.generation
        self._schedule(_sync(group), group.rebalance_timeout_ms, lambda: self._expire_syncs(group, generation))

    def complete_join(self, member: Member, response: JoinGroupResponse) -> None:
        """Answers a join that waits."""
        if member.awaiting_join is not None:
            self.answer(member.awaiting_join, response)
            member.awaiting_join = None

    def complete_sync(self, member: Member, response: SyncGroupResponse) -> bool:
        """Answers a sync that waits; False if none does."""
        if member.awaiting_sync is None:
            return False
        self.answer(member.awaiting_sync, response)
        member.awaiting_sync = None
        return True

    def assign(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Gives every member what the leader assigns to it. If this cannot be kept, all join again."""
        try:
            self.write(group, assignments)
        except GroupError as e:
            self.reset_assignments(group, e.code)
            self.begin_or_complete(group)
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, NO_ASSIGNMENT)
        self._propagate(group, ErrorCode.NONE)
        group.transition_to(STABLE, self.clock.now_ms())

    def reset_assignments(self, group: ClassicGroup, code: ErrorCode) -> None:
        """Nobody has an assignment; syncs that wait are answered with an error."""
        for member in group.members.values():
            member.assignment = NO_ASSIGNMENT
        self._propagate(group, code)

    def _propagate(self, group: ClassicGroup, code: ErrorCode) -> None:
        is_ok = code is ErrorCode.NONE
        for member in group.members.values():
            protocol = (group.protocol_type, group.protocol) if is_ok else (None, None)
            if self.complete_sync(member, SyncGroupResponse(0, code, *protocol, member.assignment)):
                # Heartbeats are not expected while a sync waits: its session may have passed meanwhile.
                self.expect_heartbeat(group, member)

    def synced(self, group: ClassicGroup, member_id: str) -> None:
        """A member has asked for its assignment."""
        group.pending_sync.discard(member_id)
        if not group.pending_sync:
            self.timers.cancel(_sync(group))

    def expect_heartbeat(self, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
        """A member is out unless it is heard of within its session timeout, or within another one."""
        self.expect(group, member.member_id, member.session_timeout_ms if timeout_ms is None else timeout_ms)

    def expect(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """The same of an id that nobody may have joined with yet."""
        self._schedule(_heartbeat(group, member_id), timeout_ms, lambda: self._expire_heartbeat(group, member_id))

    def expect_no_more(self, group: ClassicGroup, member_id: str) -> None:
        """A member has left."""
        self.timers.cancel(_heartbeat(group, member_id))

    def write(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        """Keeps the group's generation. Raises GroupError."""
        if self.journal is not None:
            self.journal.write(group.group_id, [self.record(group, assignments)])

    def record(self, group: ClassicGroup, assignments: Mapping[str, bytes], *, has_leader: bool = True) -> Record:
        """What keeps a group's generation. Without a leader the group rebalances when it is loaded."""
        value = _value(group, assignments)
        return group_metadata_record(group.group_id, value if has_leader else replace(value, leader=None))

    def end(self, group: ClassicGroup) -> None:
        """A group is there no more; who waits for one of the same name joins again."""
        for member in group.members.values():
            self.refuse_former(member)
        group.transition_to(DEAD, self.clock.now_ms())

    def _write_if_possible(self, group: ClassicGroup) -> None:
        try:
            self.write(group, {})
        except GroupError:  # the journal has said why; an older generation has no members that are alive, either
            return

    def _wait_for_more(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        self._schedule(_join(group), delay_ms, lambda: self._end_of_delay(group, delay_ms, remaining_ms))

    def _end_of_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        if group.is_member_added and remaining_ms:
            group.is_member_added = False
            next_ms = min(self.config.group_initial_rebalance_delay_ms, remaining_ms)
            self._wait_for_more(group, next_ms, max(remaining_ms - delay_ms, 0))
        else:
            self.complete(group)

    def _wait_for_joins(self, group: ClassicGroup) -> None:
        # Not at once, even if the members say so: the task may wait anew, and would then be due again for ever.
        self._schedule(_join(group), max(1, group.rebalance_timeout_ms), lambda: self.complete(group))

    def _expire_heartbeat(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if group.state is DEAD:
            return
        if member is None:
            if member_id in group.pending_join:
                group.remove(member_id)
                self._complete_without(group)
        elif not member.has_satisfied_heartbeat:
            self.refuse_waiting(member)
            group.remove(member_id)
            if group.state is PREPARING:
                self._complete_without(group)
            else:
                self.begin_or_complete(group)

    def refuse_waiting(self, member: Member) -> None:
        """A member is removed while a request of it waits: if it is still there, it joins anew."""
        if member.awaiting_join is not None:
            self.refuse_join(member.awaiting_join, ErrorCode.UNKNOWN_MEMBER_ID)
            member.awaiting_join = None
        self.complete_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))

    def refuse_former(self, member: Member) -> None:
        """A member asks once more while a request of it waits, over another connection: the former one is answered, too."""
        if member.awaiting_join is not None:
            self.refuse_join(member.awaiting_join, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            member.awaiting_join = None
        self.complete_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))

    def _complete_without(self, group: ClassicGroup) -> None:
        if group.state is PREPARING and group.has_all_joined:
            self.complete(group)

    def _expire_syncs(self, group: ClassicGroup, generation: int) -> None:
        if group.generation != generation or group.state not in (COMPLETING, STABLE) or not group.pending_sync:
            return
        for member_id in tuple(group.pending_sync):
            group.remove(member_id)
            self.timers.cancel(_heartbeat(group, member_id))
        self.begin(group)

    def _schedule(self, key: tuple[str, ...], after_ms: int, task: Task) -> None:
        self.timers.schedule(key, after_ms, task)


def current_generation(group: ClassicGroup, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The answer to a join: the leader is told of all members."""
    told = group.members.values() if member_id == group.leader_id else ()
    members = tuple(JoinGroupResponseMember(one.member_id, one.instance_id, one.metadata(group.protocol)) for one in told)
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def _value(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
    members = (
        MemberMetadata(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            one.rebalance_timeout_ms,
            one.session_timeout_ms,
            one.metadata(group.protocol),
            assignments.get(one.member_id, NO_ASSIGNMENT),
        )
        for one in group.members.values()
    )
    state_ms = NO_TIME if group.state_ms is None else group.state_ms
    return GroupMetadataValue(
        group.protocol_type or "", group.generation, group.protocol, group.leader_id, state_ms, tuple(members)
    )


def _join(group: ClassicGroup) -> tuple[str, ...]:
    return ("join", group.group_id)


def _sync(group: ClassicGroup) -> tuple[str, ...]:
    return ("sync", group.group_id)


def _heartbeat(group: ClassicGroup, member_id: str) -> tuple[str, ...]:
    return ("heartbeat", group.group_id, member_id)
