"""A log's settings, by Kafka's names and with its defaults and bounds (LogConfig).

It does not have the settings that only a cluster uses. They are rejected as unknown settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from local_log.engine.settings import Setting, flag, fraction, int_from, long_from, one_of, read_settings, whole
from local_log.errors import Invalid
from local_log.formats.primitives import INT64_MAX

_MIB = 1 << 20
_DAY_MS = 24 * 60 * 60 * 1000
_WEEK_MS = 7 * _DAY_MS

UNLIMITED = -1
LIKE_RETENTION = -2
"""The value of local.retention.ms and local.retention.bytes that stands for retention.ms and retention.bytes."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A log's settings; sizes in bytes, times in ms. `read_config` creates it and rejects values out of range."""

    segment_bytes: int = 1 << 30
    segment_ms: int = _WEEK_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * _MIB
    index_interval_bytes: int = 4096
    preallocate: bool = False
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    retention_ms: int = _WEEK_MS
    retention_bytes: int = UNLIMITED
    local_retention_ms: int = LIKE_RETENTION
    local_retention_bytes: int = LIKE_RETENTION
    file_delete_delay_ms: int = 60_000
    cleanup_policy: tuple[str, ...] = ("delete",)
    max_message_bytes: int = _MIB + 12
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = 3_600_000
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    delete_retention_ms: int = _DAY_MS
    remote_storage_enable: bool = False
    remote_log_copy_disable: bool = False
    max_segment_ms: int = field(init=False)
    """The maximum time in ms from a segment's first record to its roll; computed from other settings."""

    @property
    def compact(self) -> bool:
        """Whether the topic is compacted; every record needs a key then."""
        return "compact" in self.cleanup_policy

    @property
    def initial_file_bytes(self) -> int:
        """The initial size of a segment's log file in bytes."""
        return self.segment_bytes if self.preallocate else 0

    def __post_init__(self) -> None:
        longest = min(self.max_compaction_lag_ms, self.segment_ms) if self.compact else self.segment_ms
        object.__setattr__(self, "max_segment_ms", longest)


def read_config(settings: Mapping[str, str]) -> LogConfig:
    """The settings by Kafka's names, the rest with defaults. Raises Invalid with the setting's name and its valid values."""
    config = LogConfig(**read_settings(settings, _SETTINGS, "a log"))  # type: ignore[arg-type]  # _SETTINGS has each field's type
    _check_together(config)
    return config


def _check_together(c: LogConfig) -> None:
    if c.min_compaction_lag_ms > c.max_compaction_lag_ms:
        raise Invalid(
            f"min.compaction.lag.ms={c.min_compaction_lag_ms}: expected 0 to {c.max_compaction_lag_ms}, "
            "which is max.compaction.lag.ms"
        )
    if not c.remote_storage_enable:
        return
    if "compact" in c.cleanup_policy:
        raise Invalid("remote.storage.enable=true: a compacted topic cannot be tiered; leave compact out of cleanup.policy")
    for name, local, total in (
        ("retention.bytes", c.local_retention_bytes, c.retention_bytes),
        ("retention.ms", c.local_retention_ms, c.retention_ms),
    ):
        if total > UNLIMITED and local != LIKE_RETENTION and not 0 <= local <= total:
            raise Invalid(f"local.{name}={local}: expected 0 to {total}, which is {name}, or {LIKE_RETENTION} for the same")
        if c.remote_log_copy_disable and local not in (LIKE_RETENTION, total):
            raise Invalid(f"local.{name}={local}: nothing more is copied (remote.log.copy.disable), so it has to be {name}")


def _policies(name: str, text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not set(words) <= {"delete", "compact"}:
        raise Invalid(f"{name}={text}: expected delete, compact, both with a comma, or nothing")
    return words


def _gzip_level(name: str, text: str) -> int:
    level = whole(-1, 9)(name, text)
    if level == 0:
        raise Invalid(f"{name}=0: expected 1 to 9, or -1 for the codec's own default")
    return level


_SETTINGS: dict[str, Setting] = {
    "segment.bytes": ("segment_bytes", int_from(_MIB)),
    "internal.segment.bytes": ("segment_bytes", int_from(1)),  # Kafka's internal setting for tests: segments under 1 MiB
    "segment.ms": ("segment_ms", long_from(1)),
    "segment.jitter.ms": ("segment_jitter_ms", long_from(0)),
    "segment.index.bytes": ("segment_index_bytes", int_from(4)),
    "index.interval.bytes": ("index_interval_bytes", int_from(0)),
    "preallocate": ("preallocate", flag),
    "flush.messages": ("flush_messages", long_from(1)),
    "flush.ms": ("flush_ms", long_from(0)),
    "retention.ms": ("retention_ms", long_from(-1)),
    "retention.bytes": ("retention_bytes", long_from(-(INT64_MAX + 1))),
    "local.retention.ms": ("local_retention_ms", long_from(-2)),
    "local.retention.bytes": ("local_retention_bytes", long_from(-2)),
    "file.delete.delay.ms": ("file_delete_delay_ms", long_from(0)),
    "cleanup.policy": ("cleanup_policy", _policies),
    "max.message.bytes": ("max_message_bytes", int_from(0)),
    "message.timestamp.type": ("message_timestamp_type", one_of("CreateTime", "LogAppendTime")),
    "message.timestamp.before.max.ms": ("message_timestamp_before_max_ms", long_from(0)),
    "message.timestamp.after.max.ms": ("message_timestamp_after_max_ms", long_from(0)),
    "compression.type": ("compression_type", one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")),
    "compression.gzip.level": ("compression_gzip_level", _gzip_level),
    "compression.lz4.level": ("compression_lz4_level", whole(1, 17)),
    "compression.zstd.level": ("compression_zstd_level", whole(-131072, 22)),
    "min.cleanable.dirty.ratio": ("min_cleanable_dirty_ratio", fraction(0, 1)),
    "min.compaction.lag.ms": ("min_compaction_lag_ms", long_from(0)),
    "max.compaction.lag.ms": ("max_compaction_lag_ms", long_from(1)),
    "delete.retention.ms": ("delete_retention_ms", long_from(0)),
    "remote.storage.enable": ("remote_storage_enable", flag),
    "remote.log.copy.disable": ("remote_log_copy_disable", flag),
}

FIELDS: Final[Mapping[str, str]] = {name: field for name, (field, _) in _SETTINGS.items()}
"""The field that holds each setting, by Kafka's name of the setting."""
