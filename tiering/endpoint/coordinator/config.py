"""The settings of a group coordinator, named as Kafka's broker settings."""

from dataclasses import dataclass

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    """All times are in ms, all sizes in bytes."""

    offset_metadata_max: int = 4096
    """`offset.metadata.max.bytes`, in characters as Java counts them."""

    offsets_retention_ms: int = 7 * _DAY_MS
    """`offsets.retention.minutes`: offsets of a group that nobody uses are forgotten after this time."""

    offsets_retention_check_interval_ms: int = 600_000
    """`offsets.retention.check.interval.ms`."""

    offsets_topic_partitions: int = 50
    """`offsets.topic.num.partitions`, of a topic that is made anew."""

    offsets_topic_segment_bytes: int = 100 << 20
    """`offsets.topic.segment.bytes`."""

    group_min_session_timeout_ms: int = 6_000
    """`group.min.session.timeout.ms`."""

    group_max_session_timeout_ms: int = 1_800_000
    """`group.max.session.timeout.ms`."""

    group_initial_rebalance_delay_ms: int = 3_000
    """`group.initial.rebalance.delay.ms`: how long the first rebalance of an empty group waits for more members."""

    group_max_size: int = (1 << 31) - 1
    """`group.max.size`: members of a group."""

    new_member_join_timeout_ms: int = 300_000
    """How long a join of a new member may wait; if it is still there, it joins again."""
