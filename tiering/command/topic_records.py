"""The records of a topic, partition by partition, from where a command is to start; and those that arrive later."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from local_log.errors import NotFound, Unavailable
from remote.clock import Clock
from tiering.command.output import warn
from tiering.command.start_option import End, Start
from tiering.read.tiered_log import Isolation, TieredLog
from tiering.wiring import Tiers

if TYPE_CHECKING:
    import pyarrow as pa

_LOOK_S: Final = 1.0
_LOOK_ARCHIVE_S: Final = 10.0
"""How often logs are looked at for new records: an archive is asked for each partition each time."""

Found = tuple[int, "pa.RecordBatch"]
"""A partition, and some of its records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecords:
    """Which records of a topic are read, and where they start."""

    tiers: Tiers
    topic: str
    topic_id: str | None
    partition: int | None
    """All of them where it is None."""
    start: Start
    from_ms: int | None
    """Instead of `start`: the first record at or after this time."""
    isolation: Isolation
    key: bytes | None
    """Only records with this key."""

    def opened(self) -> dict[int, TieredLog]:
        """The logs by partition. Raises LogError."""
        return self._logs(self.tiers)

    def read(self, logs: dict[int, TieredLog]) -> Iterator[Found]:
        """The records from the start to the ends of the logs as they are now. Raises LogError."""
        for number, (first, end) in self._ranges(logs).items():
            yield from self._between(number, logs[number], first, end)

    def follow(self, logs: dict[int, TieredLog], clock: Clock) -> Iterator[Found | None]:
        """The same, and then without an end what arrives; None where it waits.

        A store that does not respond is asked again; that is said once.
        """
        ranges, is_troubled = self._ranges(logs), False
        for number, (first, end) in ranges.items():
            yield from self._between(number, logs[number], first, end)
        read_up_to = {number: end for number, (_, end) in ranges.items()}
        while True:
            yield None
            clock.sleep(_LOOK_S if self.tiers.log_dir else _LOOK_ARCHIVE_S)
            try:
                logs = self._newest(read_up_to)
                is_troubled = False
            except Unavailable as e:
                if not is_troubled:
                    warn(f"{e}; trying again")
                is_troubled = True
                continue
            for number, log in logs.items():
                first, end = read_up_to.get(number, log.log_start_offset), log.end_offset(self.isolation)
                if first < log.log_start_offset:
                    warn(f"{log.name}: offsets {first} to {log.log_start_offset - 1} were deleted before they were read")
                    first = log.log_start_offset
                if first < end:
                    yield from self._between(number, log, first, end)
                read_up_to[number] = max(first, end)

    def _logs(self, tiers: Tiers) -> dict[int, TieredLog]:
        if self.partition is None:
            return tiers.partitions(self.topic, self.topic_id)
        return {self.partition: tiers.partition(self.topic, self.partition, self.topic_id)}

    def _newest(self, read_up_to: dict[int, int]) -> dict[int, TieredLog]:
        """The logs with what arrived: the archive is asked only for what the log directory no longer has."""
        if self.tiers.log_dir is not None:
            try:
                local = self._logs(replace(self.tiers, store=None))
            except NotFound:
                local = {}
            if local and all(n in local and local[n].log_start_offset <= end for n, end in read_up_to.items()):
                return local
        return self._logs(self.tiers)

    def _ranges(self, logs: dict[int, TieredLog]) -> dict[int, tuple[int, int]]:
        """The first offset to be read of each log, and its end."""
        return {number: (self._first(log), log.end_offset(self.isolation)) for number, log in logs.items()}

    def _first(self, log: TieredLog) -> int:
        end = log.end_offset(self.isolation)
        if self.from_ms is not None:
            found = log.offset_for_time(self.from_ms)
            return end if found is None else min(found.offset, end)
        if self.start is End.earliest:
            return log.log_start_offset
        if isinstance(self.start, End):
            return end
        return self.start if self.start >= 0 else max(end + self.start, log.log_start_offset)

    def _between(self, number: int, log: TieredLog, first: int, end: int) -> Iterator[Found]:
        batches = log.read(first, end, self.isolation)
        for records in batches if self.key is None else _with_key(batches, self.key):
            yield number, records


def _with_key(batches: "Iterable[pa.RecordBatch]", key: bytes) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.compute as pc  # who wants all records does not wait for it

    for batch in batches:
        records = batch.filter(pc.equal(batch.column("key"), pa.scalar(key, pa.binary())))
        if records.num_rows:
            yield records
