"""Sums of a log by partition and hour. Both kinds are monoids: parts of a log may be summed anywhere, and merged in any order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

HOUR_MS = 3_600_000
NO_HOUR = None
"""Of what has no timestamp."""

Hour = int | None
_NO_CODECS: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class HourSums:
    """The sums of one partition and hour (UTC). A record counts in the hour of its timestamp, a batch in that of its latest
    record.

    `stored_bytes` are the bytes of batches as in the log, `decoded_bytes` those of the same batches with their records
    decompressed. `codecs` are numbers of batches by codec (see Codec); `producers` are the ids of idempotent and transactional
    producers. `record_bytes` count keys and values; `record_bytes_min` is None without records. Control records do not count.
    """

    records: int = 0
    batches: int = 0
    stored_bytes: int = 0
    decoded_bytes: int = 0
    null_keys: int = 0
    null_values: int = 0
    record_bytes: int = 0
    record_bytes_min: int | None = None
    record_bytes_max: int = 0
    codecs: Mapping[int, int] = field(default_factory=lambda: _NO_CODECS)
    producers: frozenset[int] = frozenset()

    def __add__(self, other: "HourSums") -> "HourSums":
        least = [size for size in (self.record_bytes_min, other.record_bytes_min) if size is not None]
        codecs = {codec: self.codecs.get(codec, 0) + other.codecs.get(codec, 0) for codec in {*self.codecs, *other.codecs}}
        return HourSums(
            self.records + other.records,
            self.batches + other.batches,
            self.stored_bytes + other.stored_bytes,
            self.decoded_bytes + other.decoded_bytes,
            self.null_keys + other.null_keys,
            self.null_values + other.null_values,
            self.record_bytes + other.record_bytes,
            min(least, default=None),
            max(self.record_bytes_max, other.record_bytes_max),
            codecs,
            self.producers | other.producers,
        )


@dataclass(frozen=True, slots=True)
class OffsetSums:
    """Of one partition: how many offsets were looked at, and how many of them control records have.

    What neither records nor control records have, compaction has taken, or transactions have left empty.
    """

    offsets: int = 0
    control_records: int = 0

    def __add__(self, other: "OffsetSums") -> "OffsetSums":
        return OffsetSums(self.offsets + other.offsets, self.control_records + other.control_records)


@dataclass(frozen=True, slots=True)
class PartitionSums:
    """Of one partition, or of a part of it."""

    of: OffsetSums = OffsetSums()
    hours: Mapping[Hour, HourSums] = field(default_factory=dict)

    def __add__(self, other: "PartitionSums") -> "PartitionSums":
        hours = dict(self.hours)
        for hour, sums in other.hours.items():
            hours[hour] = hours[hour] + sums if hour in hours else sums
        return PartitionSums(self.of + other.of, hours)

    @property
    def total(self) -> HourSums:
        """The sums over all hours of the partition."""
        return sum(self.hours.values(), HourSums())

    @property
    def missing_offsets(self) -> int:
        """Offsets that were looked at and that nothing has."""
        return self.of.offsets - self.of.control_records - self.total.records


def merged(parts: Iterable[PartitionSums]) -> PartitionSums:
    """The sums of all parts of a partition."""
    return sum(parts, PartitionSums())
