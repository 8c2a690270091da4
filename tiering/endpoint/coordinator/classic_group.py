"""A group of the classic protocol and its members (Kafka's ClassicGroup): what is known of it. It waits for nobody."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Final

from local_log.errors import Corrupt
from tiering.endpoint.coordinator.consumer_protocol import subscribed_topics
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_states import COMPLETING, EMPTY, PREPARING, PREVIOUS, GroupState
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequestProtocol

CONSUMER: Final = "consumer"
"""The protocol type of consumers, whose subscriptions are understood here."""

Protocols = tuple[JoinGroupRequestProtocol, ...]
Waiter = Hashable
"""Who waits for an answer; only who handed it in knows what it is."""


@dataclass(slots=True)
class Member:
    """A member. At most one of its requests waits at a time: a join or a sync."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """Whether it has not been told yet that it is a member."""
    awaiting_join: Waiter | None = None
    awaiting_sync: Waiter | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """What it says of itself for a protocol, nothing for one that it does not support."""
        return next((one.metadata for one in self.protocols if one.name == protocol), b"")

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether it is known to be alive without a heartbeat, since a request of it waits. A new one may have gone."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)


@dataclass(slots=True)
class ClassicGroup:
    """A group. One without a protocol type is simple: it has offsets and never had members."""

    group_id: str
    state_ms: int | None
    """When it came into its state, in ms; None if an old record does not say."""
    state: GroupState = EMPTY
    previous: GroupState = GroupState.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    """The protocol that the generation uses."""
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    """By member id, in the order in which they became members."""
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by instance id."""
    pending_join: set[str] = field(default_factory=set)
    """Ids that were handed out to members that are to join with them."""
    pending_sync: set[str] = field(default_factory=set)
    """Members that have not asked for their assignment yet."""
    is_member_added: bool = False
    """Whether a member has come since the delay of the first rebalance began."""
    topics: frozenset[str] | None = None
    """The topics that its members subscribe; None if that is not known."""
    _supported: Counter[str] = field(default_factory=Counter)

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Another state, which the table must allow."""
        assert self.state in PREVIOUS[state], f"{self.group_id}: {self.state} to {state}"
        self.previous, self.state, self.state_ms = self.state, state, now_ms

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin in its state."""
        return self.state in PREVIOUS[PREPARING]

    @property
    def has_all_joined(self) -> bool:
        """Whether nobody is to join any more who is known."""
        return not self.pending_join and all(member.awaiting_join is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of its members', in ms."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def add(self, member: Member, protocol_type: str | None) -> None:
        """A member more; the first one leads, and says which type of protocols the group uses."""
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._supported.update(_names(member.protocols))
        self.pending_join.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """A member less, or an id that nobody may join with any more."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supported.subtract(_names(member.protocols))
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def rename(self, member: Member, member_id: str) -> None:
        """A static member gets another id, under which nothing waits."""
        assert member.instance_id is not None
        del self.members[member.member_id]
        self.members[member_id] = replace(member, member_id=member_id, is_new=False, awaiting_join=None, awaiting_sync=None)
        self.static_members[member.instance_id] = member_id
        if self.leader_id == member.member_id:
            self.leader_id = member_id

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        """Other protocols of a member."""
        self._supported.subtract(_names(member.protocols))
        member.protocols = protocols
        self._supported.update(_names(protocols))

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols may join: one is supported by everybody."""
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and any(map(self._is_supported_by_all, _names(protocols)))

    def _is_supported_by_all(self, protocol: str) -> bool:
        return self._supported[protocol] == len(self.members)

    def select_protocol(self) -> str:
        """Of the protocols that every member supports the one that most members name first."""
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(filter(self._is_supported_by_all, _names(member.protocols)))] += 1
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Makes a member lead that has joined, if the leader has not; False if none has."""
        leader = self.members.get(self.leader_id or "")
        if leader is None:
            return False
        if leader.awaiting_join is None:
            joined = next((one.member_id for one in self.members.values() if one.awaiting_join is not None), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    def next_generation(self, now_ms: int) -> None:
        """The members that there are now, without assignments yet; or none."""
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.topics = self.subscribed()
        self.transition_to(COMPLETING if self.members else EMPTY, now_ms)
        self.pending_sync.clear()

    def subscribed(self) -> frozenset[str] | None:
        """The topics that its members subscribe, if these are consumers whose subscriptions make sense."""
        if self.protocol_type != CONSUMER:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        try:
            return frozenset().union(*(subscribed_topics(one.metadata(self.protocol)) for one in self.members.values()))
        except Corrupt:
            return None

    def is_subscribed(self, topic: str) -> bool:
        """Whether its members may read a topic; consumers whose subscriptions are not known may read any."""
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    def validate_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises GroupError for one that is no member, or no longer the one with this instance id."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
            if current != member_id:
                raise GroupError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)

    def validate_generation(self, generation: int) -> None:
        """Raises GroupError for another generation than the current one."""
        if generation != self.generation:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)


def _names(protocols: Protocols) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.name for one in protocols))
