"""What a broker calls the settings of topics that have none of their own (Kafka's ServerTopicConfigSynonyms)."""

from collections.abc import Mapping
from typing import Final

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS

BROKER_SYNONYMS: Final[Mapping[str, tuple[str, int]]] = {
    "log.retention.ms": ("retention.ms", 1),
    "log.retention.minutes": ("retention.ms", _MINUTE_MS),
    "log.retention.hours": ("retention.ms", _HOUR_MS),
    "log.retention.bytes": ("retention.bytes", 1),
    "log.local.retention.ms": ("local.retention.ms", 1),
    "log.local.retention.bytes": ("local.retention.bytes", 1),
    "log.cleanup.policy": ("cleanup.policy", 1),
    "log.segment.delete.delay.ms": ("file.delete.delay.ms", 1),
    "log.segment.bytes": ("segment.bytes", 1),
    "log.roll.ms": ("segment.ms", 1),
    "log.roll.hours": ("segment.ms", _HOUR_MS),
    "log.roll.jitter.ms": ("segment.jitter.ms", 1),
    "log.roll.jitter.hours": ("segment.jitter.ms", _HOUR_MS),
    "log.index.size.max.bytes": ("segment.index.bytes", 1),
    "log.index.interval.bytes": ("index.interval.bytes", 1),
    "log.flush.interval.messages": ("flush.messages", 1),
    "log.flush.interval.ms": ("flush.ms", 1),
    "log.preallocate": ("preallocate", 1),
    "message.max.bytes": ("max.message.bytes", 1),
    "log.message.timestamp.type": ("message.timestamp.type", 1),
    "log.message.timestamp.before.max.ms": ("message.timestamp.before.max.ms", 1),
    "log.message.timestamp.after.max.ms": ("message.timestamp.after.max.ms", 1),
    "log.cleaner.delete.retention.ms": ("delete.retention.ms", 1),
    "log.cleaner.min.compaction.lag.ms": ("min.compaction.lag.ms", 1),
    "log.cleaner.max.compaction.lag.ms": ("max.compaction.lag.ms", 1),
    "log.cleaner.min.cleanable.ratio": ("min.cleanable.dirty.ratio", 1),
}
"""A topic's setting by the broker's, and by what the value is multiplied; of several for one the first counts."""
