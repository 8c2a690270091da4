"""How answers to members of groups may differ from a broker's."""

from compared_answers import Compared, Difference
from known_difference import KnownDifference
from mixed_members import subscription

from tiering.endpoint.protocol.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_GROUPS,
    JOIN_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_RANGE, _STICKY = JoinGroupRequestProtocol("range"), JoinGroupRequestProtocol("sticky")
_SUBSCRIBED = (JoinGroupRequestProtocol("range", subscription("many.with-dots")),)


def _named_twice(of: Compared, found: Difference) -> bool:
    joins = (one for one in (*of.before, of.request) if isinstance(one, JoinGroupRequest))
    return any(len({protocol.name for protocol in join.protocols}) < len(join.protocols) for join in joins)


def _elected(of: Compared, found: Difference) -> bool:
    if of.api is not JOIN_GROUP or None in (of.theirs, of.ours) or of.theirs.error_code or of.ours.error_code:
        return False
    has_left = any(isinstance(one, LeaveGroupRequest | ConsumerGroupHeartbeatRequest) for one in of.before)
    first = {one.protocols[0].name for one in (*of.before, of.request) if isinstance(one, JoinGroupRequest) and one.protocols}
    if found.path == "protocol_name" or found.path == "members.metadata":
        return len(first) > 1
    return has_left and (found.path == "leader" or found.path.startswith("members"))


def _waits_already(of: Compared, found: Difference) -> bool:
    if of.api is not JOIN_GROUP or of.theirs is not None or of.ours is None:
        return False
    return bool(of.ours.error_code == ErrorCode.REBALANCE_IN_PROGRESS)


def _is_not_upgraded(of: Compared, found: Difference) -> bool:
    if of.ours is not None or of.theirs is None or of.api not in (JOIN_GROUP, SYNC_GROUP):
        return False
    if of.theirs.error_code != ErrorCode.REBALANCE_IN_PROGRESS:
        return False
    # Who waits is answered by an upgrade here, too: it was refused. A broker finds out why only after it has answered them, in
    # ConsumerGroup.fromClassicGroup (odd bytes, a partition of two members) or behind it (a group that is full).
    return any(isinstance(one, ConsumerGroupHeartbeatRequest) and one.member_epoch == 0 for one in of.before)


def _downgrades_in_its_place(of: Compared, found: Difference) -> bool:
    last = of.before[-1] if of.before else None
    if of.api is not DESCRIBE_GROUPS or not isinstance(last, JoinGroupRequest) or last.group_instance_id is None:
        return False
    before = (one for one in of.before if isinstance(one, ConsumerGroupHeartbeatRequest))
    was_new = any(one.instance_id == last.group_instance_id for one in before)
    states = tuple(one.groups[0].group_state for one in (of.theirs, of.ours))
    return was_new and states == ("Stable", "PreparingRebalance")


def _forgets_group(of: Compared, found: Difference) -> bool:
    is_refused = any(isinstance(one, JoinGroupRequest) and one.member_id for one in of.before)
    if found.path.endswith("error_code"):
        asks_group = of.api in (CONSUMER_GROUP_HEARTBEAT, OFFSET_COMMIT, OFFSET_FETCH)
        is_unknown = found.theirs in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.ILLEGAL_GENERATION)  # by the version of a commit
        return is_refused and asks_group and is_unknown and found.ours == ErrorCode.UNKNOWN_MEMBER_ID
    is_epoch = found.path.endswith(("epoch", "generation_id")) and None not in (found.theirs, found.ours)
    return is_refused and is_epoch and found.theirs in (1, 2) and bool(found.ours > found.theirs)


def _becomes_static(of: Compared, found: Difference) -> bool:
    said = of.request
    if of.api is not CONSUMER_GROUP_HEARTBEAT or said.instance_id is None or said.member_epoch != 0:
        return False
    before = (one for one in of.before[:-1] if isinstance(one, ConsumerGroupHeartbeatRequest))
    has_other = any(one.member_id == said.member_id and one.instance_id != said.instance_id for one in before)
    return has_other and found.path.startswith(("assignment", "member_epoch"))


def _upgrades_in_its_place(of: Compared, found: Difference) -> bool:
    said = of.request
    if of.api is not CONSUMER_GROUP_HEARTBEAT or said.instance_id is None or said.member_epoch != 0:
        return False
    was_classic = any(isinstance(one, JoinGroupRequest) and one.group_instance_id == said.instance_id for one in of.before)
    return was_classic and found.path.startswith(("assignment", "member_epoch"))


def _join(
    protocols: tuple[JoinGroupRequestProtocol, ...], member_id: str = "", instance_id: str | None = None
) -> JoinGroupRequest:
    return JoinGroupRequest("@group", 30_000, 60_000, member_id, instance_id, "consumer", protocols)


def _sync(member_id: str, assignment: bytes) -> SyncGroupRequest:
    given = (SyncGroupRequestAssignment(member_id, assignment),)
    return SyncGroupRequest("@group", 1_000_000, member_id, None, "consumer", "range", given)


def _heard(member_id: str, instance_id: str | None) -> ConsumerGroupHeartbeatRequest:
    topics = ("many.with-dots",)
    return ConsumerGroupHeartbeatRequest("@group", member_id, 0, instance_id, None, 60_000, topics, None, "range", ())


GROUP_DIFFERENCES = (
    KnownDifference(
        "JoinGroup: a protocol that a member names twice",
        "It counts once. A broker counts it twice, and then takes it for one that not all members support.",
        _named_twice,
        tuple((JOIN_GROUP, 0, _join(protocols)) for protocols in ((_RANGE,), (_RANGE, _RANGE), (_RANGE,))),
    ),
    KnownDifference(
        "JoinGroup: the protocol when votes are equal, and who leads after the leader has left",
        "What the member votes for that joined first, and this member; a broker's choice is that of a hash table.",
        _elected,
        (
            (JOIN_GROUP, 0, _join((_RANGE, _STICKY))),
            (JOIN_GROUP, 0, _join((_STICKY, _RANGE))),
            (JOIN_GROUP, 0, _join((_RANGE, _STICKY), "@0")),
        ),
    ),
    KnownDifference(
        "JoinGroup: a member that sends it again over another connection, while its first request still waits",
        "The first one is answered with REBALANCE_IN_PROGRESS; a broker leaves it without an answer.",
        _waits_already,
        (
            *((JOIN_GROUP, 9, _join((_RANGE,), member_id)) for member_id in ("", "@0")),
            (SYNC_GROUP, 5, _sync("@0", b"")),
            *((JOIN_GROUP, 9, _join((_RANGE,), member_id)) for member_id in ("", "@0", "@0")),
        ),
    ),
    KnownDifference(
        "JoinGroup, SyncGroup: one that waits when a group cannot be upgraded: it is full, or its members' assignments are odd",
        "It goes on waiting. A broker answers it with REBALANCE_IN_PROGRESS, and so its member joins again.",
        _is_not_upgraded,
        (
            *((JOIN_GROUP, 9, _join((_RANGE,), member_id)) for member_id in ("", "@0")),
            (SYNC_GROUP, 5, _sync("@0", b"?")),
            *((JOIN_GROUP, 9, _join((_RANGE,), member_id)) for member_id in ("", "@0")),
            *((CONSUMER_GROUP_HEARTBEAT, 1, _heard("m0", None)),) * 2,
        ),
    ),
    KnownDifference(
        "JoinGroup: a static member that takes its own place, and downgrades a group in which others wait for partitions",
        "A rebalance begins. A broker's group is stable at once, and those that wait do not get the partitions.",
        _downgrades_in_its_place,
        (
            (CONSUMER_GROUP_HEARTBEAT, 1, _heard("m0", "i0")),
            (JOIN_GROUP, 9, _join(_SUBSCRIBED, "c0")),
            (JOIN_GROUP, 9, _join(_SUBSCRIBED, "", "i0")),
        ),
    ),
    KnownDifference(
        "All that ask a group: one without members, after a JoinGroup with an unknown member id was refused",
        "It is still there, and its epoch goes on. A broker has forgotten it, without having written that down.",
        _forgets_group,
        (
            *((CONSUMER_GROUP_HEARTBEAT, 1, _heard("m0", None)),) * 2,
            (CONSUMER_GROUP_HEARTBEAT, 1, ConsumerGroupHeartbeatRequest("@group", "m0", -1)),
            (JOIN_GROUP, 9, _join((_RANGE,), "nobody")),
            (CONSUMER_GROUP_HEARTBEAT, 1, ConsumerGroupHeartbeatRequest("@group", "m0", 1_000_000)),
            (CONSUMER_GROUP_HEARTBEAT, 1, _heard("m0", None)),
        ),
    ),
    KnownDifference(
        "ConsumerGroupHeartbeat: a member that joins again, with another group.instance.id or with one for the first time",
        "It gets its partitions of the group's epoch. A broker gives it none before the next one, if it was not in this one.",
        _becomes_static,
        tuple((CONSUMER_GROUP_HEARTBEAT, 1, _heard(*who)) for who in (("m0", None), ("m1", None), ("m0", "i0"))),
    ),
    KnownDifference(
        "ConsumerGroupHeartbeat: a static member that takes its own place, and upgrades a group in which partitions are nobody's",
        "Another epoch begins, in which all are assigned. A broker begins none, and nobody reads these.",
        _upgrades_in_its_place,
        (
            (JOIN_GROUP, 9, _join(_SUBSCRIBED, "", "i0")),
            (CONSUMER_GROUP_HEARTBEAT, 1, _heard("m0", "i0")),
        ),
    ),
)
