"""What members subscribe, and which topics that are (of Kafka's GroupMetadataManager).

Regular expressions are resolved after the heartbeat that brings them, and again when there are new topics or time has passed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.modern.changes import Changes
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.member import NO_TIMEOUT, ConsumerGroupMember
from tiering.endpoint.coordinator.modern.regular_expressions import is_valid
from tiering.endpoint.coordinator.modern.topics import Topics, metadata_hash
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

LOOK_MS: Final = 1_000
"""The topics of a group are compared with those that there are once in this time."""
REFRESH_MIN_MS: Final = 10_000
"""Kafka's REGEX_BATCH_REFRESH_MIN_INTERVAL_MS."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What has changed of a member's subscription. `begins_epoch` says that partitions are to be assigned anew."""

    has_changed: bool
    begins_epoch: bool
    brings_regex: bool


def updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, client_id: str, host: str
) -> ConsumerGroupMember:
    """The member as the request says it is; what it does not say stays."""
    names = request.subscribed_topic_names
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if request.rebalance_timeout_ms == NO_TIMEOUT else request.rebalance_timeout_ms
        ),
        server_assignor=member.server_assignor if request.server_assignor is None else request.server_assignor,
        names=member.names if names is None else frozenset(names),
        regex=member.regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        client_id=client_id,
        client_host=host,
        classic=None,
    )


def subscribe(changes: Changes, before: ConsumerGroupMember, after: ConsumerGroupMember) -> Subscription:
    """What the member says of itself now, if that is something else. Raises GroupError for no regular expression."""
    group = changes.group
    has_regex_changed = (before.regex or "") != (after.regex or "")
    is_new_regex = has_regex_changed and bool(after.regex) and not group.regexes[after.regex or ""]
    if is_new_regex and not is_valid(after.regex or ""):
        told = f"SubscribedTopicRegex `{after.regex}` is not a valid regular expression."
        raise GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, told)
    # Kafka waits with another epoch until a new expression is resolved, since partitions are assigned again then.
    is_resolved = has_regex_changed and (after.regex or "") in {"", *group.resolved}
    was_last = has_regex_changed and bool(before.regex) and group.regexes[before.regex or ""] == 1
    if after != before:
        changes.tell(after)
    if was_last:
        changes.forget_regex(before.regex or "")
    have_names_changed = after.names != before.names
    return Subscription(have_names_changed or has_regex_changed, have_names_changed or is_resolved, is_new_regex)


def is_look_due(group: ConsumerGroup, now_ms: int) -> bool:
    """Whether the topics of a group are to be compared with those that there are."""
    return group.looked_ms is None or not 0 <= now_ms - group.looked_ms < LOOK_MS


def update_topics(changes: Changes, topics: Topics, now_ms: int, *, begins_epoch: bool) -> None:
    """Begins another epoch if that is wanted, or if the topics of the group have changed."""
    if not begins_epoch and not is_look_due(changes.group, now_ms):
        return
    found = metadata_hash(changes.group.subscribed, topics)
    if begins_epoch or found != changes.group.metadata_hash:
        changes.begin_epoch(found)
        if changes.group.has_partition_metadata:
            changes.forget_partition_metadata()
    changes.group.looked_ms = now_ms


def needs_resolving(
    before: ConsumerGroup, group: ConsumerGroup, now_ms: int, interval_ms: int, names: Collection[str], *, brings_regex: bool
) -> bool:
    """Whether the regular expressions of a group are to be resolved, at most once in a time.

    `before` is the group as it was before the heartbeat. `names` are those of all topics: they are the same object if they are as
    they were the last time.
    """
    if not group.regexes:
        return False
    last_ms = next((one.at_ms for one in before.resolved.values()), None)
    since_ms = None if last_ms is None or last_ms > now_ms else now_ms - last_ms  # the clock may have been set back
    if since_ms is not None and since_ms <= REFRESH_MIN_MS:
        return False
    is_old = since_ms is None or since_ms > interval_ms
    return brings_regex or is_old or group.regexes.keys() != before.resolved.keys() or before.resolved_of is not names


def resolve(changes: Changes, found: Mapping[str, Iterable[str]], topics: Topics, now_ms: int) -> None:
    """The topics that regular expressions name; another epoch, if they are others than before."""
    has_changed = False
    for regex, names in found.items():
        if not changes.group.regexes[regex]:
            continue  # nobody subscribes it any more
        before = changes.group.resolved.get(regex)
        has_changed = has_changed or frozenset(names) != (frozenset() if before is None else before.topics)
        changes.resolve(regex, names, now_ms)
    of_topics = metadata_hash(changes.group.subscribed, topics)
    if has_changed or of_topics != changes.group.metadata_hash:
        changes.begin_epoch(of_topics)
        changes.group.looked_ms = now_ms
