"""The settings of a group coordinator, named as Kafka's broker settings."""

from dataclasses import dataclass
from enum import StrEnum

from local_log.errors import Invalid
from tiering.endpoint.consumer_group_settings import (
    CONSUMER_GROUP_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_ASSIGNORS,
    CONSUMER_GROUP_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MAX_SIZE,
    CONSUMER_GROUP_MIGRATION_POLICY,
    CONSUMER_GROUP_REGEX_REFRESH,
    CONSUMER_GROUP_SESSION_TIMEOUT,
)
from tiering.endpoint.settings import (
    ENDPOINT_GROUPS_MAX_BYTES,
    GROUP_INITIAL_REBALANCE_DELAY,
    GROUP_MAX_SESSION_TIMEOUT,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT,
    OFFSET_METADATA_MAX,
    OFFSETS_RETENTION,
    OFFSETS_RETENTION_CHECK,
    OFFSETS_TOPIC_PARTITIONS,
    OFFSETS_TOPIC_SEGMENT,
    Settings,
)

_MINUTE_MS = 60_000
_DAY_MS = 24 * 60 * 60 * 1000


class ConsumerGroupMigrationPolicy(StrEnum):
    """Which groups with members may change their type."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def is_upgrade_enabled(self) -> bool:
        """Whether a classic group becomes a consumer group."""
        return self in (ConsumerGroupMigrationPolicy.BIDIRECTIONAL, ConsumerGroupMigrationPolicy.UPGRADE)

    @property
    def is_downgrade_enabled(self) -> bool:
        """Whether a consumer group becomes a classic group."""
        return self in (ConsumerGroupMigrationPolicy.BIDIRECTIONAL, ConsumerGroupMigrationPolicy.DOWNGRADE)


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

    consumer_group_session_timeout_ms: int = 45_000
    """`group.consumer.session.timeout.ms`: a member of a consumer group that is not heard of for so long is removed."""

    consumer_group_heartbeat_interval_ms: int = 5_000
    """`group.consumer.heartbeat.interval.ms`: how often members of consumer groups are told to be heard of."""

    consumer_group_max_size: int = (1 << 31) - 1
    """`group.consumer.max.size`: members of a consumer group."""

    consumer_group_assignors: tuple[str, ...] = ("uniform", "range")
    """`group.consumer.assignors`: the first one is used where members name none."""

    consumer_group_assignment_interval_ms: int = 1_000
    """`group.consumer.assignment.interval.ms`: partitions of a consumer group are not assigned anew more often."""

    consumer_group_regex_refresh_interval_ms: int = 600_000
    """`group.consumer.regex.refresh.interval.ms`."""

    consumer_group_migration_policy: ConsumerGroupMigrationPolicy = ConsumerGroupMigrationPolicy.BIDIRECTIONAL
    """`group.consumer.migration.policy`."""

    groups_bytes_max: int = 128 << 20
    """`endpoint.groups.max.bytes`: memory of all groups, their members and offsets."""

    new_member_join_timeout_ms: int = 300_000
    """How long a join of a new member may wait; if it is still there, it joins again."""

    @classmethod
    def of(cls, settings: Settings) -> "GroupCoordinatorConfig":
        """As the endpoint is set. Raises Invalid if the longest session is shorter than the shortest."""
        shortest_ms, longest_ms = settings[GROUP_MIN_SESSION_TIMEOUT], settings[GROUP_MAX_SESSION_TIMEOUT]
        if longest_ms < shortest_ms:
            raise Invalid(
                f"{GROUP_MAX_SESSION_TIMEOUT.name}={longest_ms}: expected {shortest_ms} or more, which is "
                f"{GROUP_MIN_SESSION_TIMEOUT.name}"
            )
        return cls(
            offset_metadata_max=settings[OFFSET_METADATA_MAX],
            offsets_retention_ms=settings[OFFSETS_RETENTION] * _MINUTE_MS,
            offsets_retention_check_interval_ms=settings[OFFSETS_RETENTION_CHECK],
            offsets_topic_partitions=settings[OFFSETS_TOPIC_PARTITIONS],
            offsets_topic_segment_bytes=settings[OFFSETS_TOPIC_SEGMENT],
            group_min_session_timeout_ms=shortest_ms,
            group_max_session_timeout_ms=longest_ms,
            group_initial_rebalance_delay_ms=settings[GROUP_INITIAL_REBALANCE_DELAY],
            group_max_size=settings[GROUP_MAX_SIZE],
            consumer_group_session_timeout_ms=settings[CONSUMER_GROUP_SESSION_TIMEOUT],
            consumer_group_heartbeat_interval_ms=settings[CONSUMER_GROUP_HEARTBEAT_INTERVAL],
            consumer_group_max_size=settings[CONSUMER_GROUP_MAX_SIZE],
            consumer_group_assignors=settings[CONSUMER_GROUP_ASSIGNORS],
            consumer_group_assignment_interval_ms=settings[CONSUMER_GROUP_ASSIGNMENT_INTERVAL],
            consumer_group_regex_refresh_interval_ms=settings[CONSUMER_GROUP_REGEX_REFRESH],
            consumer_group_migration_policy=ConsumerGroupMigrationPolicy(settings[CONSUMER_GROUP_MIGRATION_POLICY]),
            groups_bytes_max=settings[ENDPOINT_GROUPS_MAX_BYTES],
        )
