"""How a member comes from the partitions that it has to those that it is to have (Kafka's CurrentAssignmentBuilder).

STABLE                  it has what its target epoch gives it
UNREVOKED_PARTITIONS    it is to give up partitions first, and stays in its epoch until it says that it no longer has them
UNRELEASED_PARTITIONS   it is in the target epoch, and some of its partitions are still another member's

                                      it is to give up partitions that it has
   STABLE, UNRELEASED ------------------------------------------------------------> UNREVOKED
   any of them, without such partitions -- others have some of its partitions ----> UNRELEASED
   any of them, without such partitions -- it has all of them -------------------> STABLE

A transition to the same state is one, too. What a member gives up is nobody's as soon as it says so, and only then.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tiering.endpoint.coordinator.modern.assignors.group_spec import Partitions
from tiering.endpoint.coordinator.modern.member import NO_PARTITIONS, ConsumerGroupMember, Epochs, MemberState
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import TopicPartitions

Owned = Iterable[TopicPartitions] | None
"""The partitions that a member says it has, None if it does not say."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a member is to have as of an epoch."""

    epoch: int
    partitions: Partitions


@dataclass(frozen=True, slots=True)
class Facts:
    """What a member's next state depends on besides the member."""

    target: Target
    has_subscription_changed: bool
    subscribed: frozenset[str]
    """The ids of the topics that it subscribes and that there are."""
    owned: Owned
    is_owned: Callable[[str, int], bool]
    """Whether a member has a partition, or has not given it up yet."""


def reconciled(member: ConsumerGroupMember, facts: Facts) -> ConsumerGroupMember | None:
    """The member's next state, itself if there is none; None if its state is unknown, and it must join anew."""
    match member.state:
        case MemberState.STABLE if member.epoch == facts.target.epoch:
            return _narrowed(member, facts) if facts.has_subscription_changed else member
        case MemberState.UNREVOKED_PARTITIONS if owns_any(facts.owned, member.revoked):
            return _narrowed(member, facts) if facts.has_subscription_changed else member
        case MemberState.UNKNOWN:
            has_nothing = facts.owned is not None and not tuple(facts.owned)
            return _next(member, facts, facts.target.epoch) if has_nothing else None
        case _:
            return _next(member, facts, member.epoch)


def owns_any(owned: Owned, of: Epochs) -> bool:
    """Whether a member may still have one of these partitions: who does not say, may."""
    if owned is None:
        return True
    return any(not of.get(topic.topic_id, {}).keys().isdisjoint(topic.partitions) for topic in owned)


def _narrowed(member: ConsumerGroupMember, facts: Facts) -> ConsumerGroupMember:
    """Without the topics that it no longer subscribes."""
    removed = {topic: epochs for topic, epochs in member.assigned.items() if topic not in facts.subscribed}
    if not removed:
        return member
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic in facts.subscribed}
    revoked = dict(member.revoked)
    for topic, epochs in removed.items():
        revoked[topic] = {**revoked.get(topic, {}), **epochs}
    narrowed = replace(member.with_epoch(member.epoch), assigned=kept)
    if owns_any(facts.owned, revoked):
        return replace(narrowed, state=MemberState.UNREVOKED_PARTITIONS, revoked=revoked)
    return narrowed


def _next(member: ConsumerGroupMember, facts: Facts, epoch: int) -> ConsumerGroupMember:
    kept: dict[str, Mapping[int, int]] = {}
    revoked: dict[str, Mapping[int, int]] = {}
    free: dict[str, frozenset[int]] = {}
    waits = False
    for topic in dict.fromkeys((*facts.target.partitions, *member.assigned)):
        target = facts.target.partitions.get(topic, frozenset()) if topic in facts.subscribed else frozenset()
        had, own = member.assigned.get(topic, {}), member.revoked.get(topic, {})
        missing = target - had.keys()
        # What it has just given up itself is nobody else's.
        free[topic] = frozenset(n for n in missing if n in own or not facts.is_owned(topic, n))
        waits = waits or len(free[topic]) < len(missing)
        kept[topic] = {number: since for number, since in had.items() if number in target}
        revoked[topic] = {number: since for number, since in had.items() if number not in target}
    revoked = _without_empty(revoked)
    if revoked and owns_any(facts.owned, revoked):
        unrevoked = MemberState.UNREVOKED_PARTITIONS
        return replace(member.with_epoch(epoch), state=unrevoked, assigned=_without_empty(kept), revoked=revoked)
    assigned = {topic: {**kept[topic], **dict.fromkeys(sorted(of), facts.target.epoch)} for topic, of in free.items()}
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return replace(member.with_epoch(facts.target.epoch), state=state, assigned=_without_empty(assigned), revoked=NO_PARTITIONS)


def _without_empty(of: Epochs) -> dict[str, Mapping[int, int]]:
    return {topic: epochs for topic, epochs in of.items() if epochs}
