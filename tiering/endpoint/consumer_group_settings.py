"""The settings of consumer groups (KIP-848) by the names of Kafka's broker settings; `settings` has them among all."""

from typing import Final

from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.config_def import ConfigType, Setting, int_setting, names_of, one_of_in_any_case

CONSUMER_GROUP_SESSION_TIMEOUT: Final = int_setting(
    "group.consumer.session.timeout.ms", 45_000, 1, "How long a member of a consumer group may be silent."
)
CONSUMER_GROUP_MIN_SESSION_TIMEOUT: Final = int_setting(
    "group.consumer.min.session.timeout.ms", 45_000, 1, "The least `consumer.session.timeout.ms` that a group may be given."
)
CONSUMER_GROUP_MAX_SESSION_TIMEOUT: Final = int_setting("group.consumer.max.session.timeout.ms", 60_000, 1, "The greatest one.")
CONSUMER_GROUP_HEARTBEAT_INTERVAL: Final = int_setting(
    "group.consumer.heartbeat.interval.ms", 5_000, 1, "How often members of consumer groups are to be heard of."
)
CONSUMER_GROUP_MIN_HEARTBEAT_INTERVAL: Final = int_setting(
    "group.consumer.min.heartbeat.interval.ms", 5_000, 1, "The least `consumer.heartbeat.interval.ms` that a group may be given."
)
CONSUMER_GROUP_MAX_HEARTBEAT_INTERVAL: Final = int_setting(
    "group.consumer.max.heartbeat.interval.ms", 15_000, 1, "The greatest one."
)
CONSUMER_GROUP_MAX_SIZE: Final = int_setting("group.consumer.max.size", INT32_MAX, 1, "Members of a consumer group.")
CONSUMER_GROUP_ASSIGNORS: Final = Setting(
    "group.consumer.assignors",
    ConfigType.LIST,
    ("uniform", "range"),
    names_of("uniform", "range"),
    "Who assigns partitions in consumer groups; the first one does where members name none.",
)
CONSUMER_GROUP_ASSIGNMENT_INTERVAL: Final = int_setting(
    "group.consumer.assignment.interval.ms", 1_000, 0, "Partitions of a consumer group are not assigned anew more often."
)
CONSUMER_GROUP_MIN_ASSIGNMENT_INTERVAL: Final = int_setting(
    "group.consumer.min.assignment.interval.ms", 0, 0, "The least `consumer.assignment.interval.ms` that a group may be given."
)
CONSUMER_GROUP_MAX_ASSIGNMENT_INTERVAL: Final = int_setting(
    "group.consumer.max.assignment.interval.ms", 15_000, 0, "The greatest one."
)
CONSUMER_GROUP_REGEX_REFRESH: Final = int_setting(
    "group.consumer.regex.refresh.interval.ms",
    600_000,
    10_000,
    "How often the topics are looked for that match regular expressions of consumer groups, besides when there are new ones.",
)
CONSUMER_GROUP_MIGRATION_POLICY: Final = Setting(
    "group.consumer.migration.policy",
    ConfigType.STRING,
    "bidirectional",
    one_of_in_any_case("bidirectional", "upgrade", "downgrade", "disabled"),
    "Whether a classic group with members becomes a consumer group (upgrade) when a member of KIP-848 joins, and a classic one "
    "(downgrade) when the last of these has gone; or both, or neither.",
)

CONSUMER_GROUP_SETTINGS: Final = (
    CONSUMER_GROUP_SESSION_TIMEOUT,
    CONSUMER_GROUP_MIN_SESSION_TIMEOUT,
    CONSUMER_GROUP_MAX_SESSION_TIMEOUT,
    CONSUMER_GROUP_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MIN_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MAX_HEARTBEAT_INTERVAL,
    CONSUMER_GROUP_MAX_SIZE,
    CONSUMER_GROUP_ASSIGNORS,
    CONSUMER_GROUP_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_MIN_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_MAX_ASSIGNMENT_INTERVAL,
    CONSUMER_GROUP_REGEX_REFRESH,
    CONSUMER_GROUP_MIGRATION_POLICY,
)
