"""A real broker starts on logs that we rolled, truncated and cut at their start, and a consumer reads every record of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import real_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic
from logs_at_work import batch_of
from small_logs import bases, marker

from local_log.engine.config import LogConfig
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.filenames import CLEAN_SHUTDOWN, LOCK, TopicPartition
from local_log.formats.record import Codec
from local_log.os_disk import OsWritableDisk
from remote.clock import RandomIds, SystemClock, jitter

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

CONFIG = LogConfig(segment_bytes=4096, segment_index_bytes=4096, index_interval_bytes=512)
PRODUCER = 4_000
"""The first of the ids that producers have here; no broker has given them out."""

Read = tuple[int, bytes | None, bytes | None]
"""A record's offset, key and value."""


@dataclass
class Lived:
    """A partition's log, and what a consumer is to find in it: the records, and those whose transaction was aborted."""

    manager: LogManager
    partition: TopicPartition
    epoch: int = 0
    records: list[Read] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)
    undecided: int = 1 << 62
    """Where the first transaction starts that has not ended."""
    _sequences: dict[int, int] = field(default_factory=dict)

    @property
    def log(self) -> UnifiedLog:
        return self.manager.log(self.partition)

    @property
    def committed(self) -> list[Read]:
        """What a consumer finds that reads what is committed."""
        return [r for r in self.records if r[0] not in self.aborted and r[0] < self.undecided]

    def append(self, batches: int, producer: int = -1, *, aborted: bool = False) -> None:
        """So many batches of one to three records, in Kafka's codecs by turns; of a producer, in its transaction."""
        for at in range(batches):
            first = self.log.log_end_offset
            values = [b"%d-%d" % (first, i) + bytes(200) for i in range(1 + at % 3)]
            keys = tuple(None if i else b"k%d" % first for i in range(len(values)))
            sequence = self._sequences.get(producer, 0) if producer >= 0 else -1
            self._sequences[producer] = sequence + len(values)
            made = batch_of(
                *values,
                keys=keys,
                time=SystemClock().now_ms(),
                producer=producer,
                sequence=sequence,
                transactional=producer >= 0,
                codec=Codec(at % len(Codec)),
            )
            assert self.log.append_as_leader(made, self.epoch).first_offset == first
            self.records += [(first + i, key, value) for i, (key, value) in enumerate(zip(keys, values, strict=True))]
            self.aborted |= set(range(first, first + len(values))) if aborted else set()
        self._replicate()

    def end(self, producer: int, *, commit: bool) -> None:
        """A marker, which no consumer is given."""
        made = marker(0, producer, commit=commit, time=SystemClock().now_ms())
        self.log.append_as_leader(made, self.epoch, Origin.COORDINATOR)
        self._replicate()

    def truncate(self, offset: int) -> None:
        """Cuts the log, as a new leader has it done; what is appended afterwards is of a later leader epoch."""
        self.manager.truncate({self.partition: offset})
        assert self.log.log_end_offset == offset
        # A batch goes whole, and the first record of each has a key here.
        starts = [o for o, key, _ in self.records if key is not None and o <= offset]
        first = starts[-1] if any(o == offset for o, _, _ in self.records) else offset
        self.records = [r for r in self.records if r[0] < first]
        self.aborted = {o for o in self.aborted if o < first}
        self.epoch += 1

    def delete_records(self, offset: int) -> None:
        """Lets the log start later."""
        assert self.log.maybe_increment_log_start_offset(offset)
        self.records = [r for r in self.records if r[0] >= offset]

    def _replicate(self) -> None:
        self.log.update_high_watermark(self.log.log_end_offset)


def rolls(lived: Lived) -> None:
    lived.append(60)


def is_cut_in_an_older_segment(lived: Lived) -> None:
    lived.append(60)
    older = bases(lived.log)[2]
    lived.truncate(older + 4)
    assert bases(lived.log)[-1] == older
    lived.append(40)


def is_cut_at_its_tail(lived: Lived) -> None:
    lived.append(50)
    lived.truncate(lived.log.log_end_offset - 5)
    lived.append(20)
    lived.truncate(lived.log.log_end_offset - 1)
    lived.append(20)


def loses_its_first_records(lived: Lived) -> None:
    lived.append(60)
    lived.delete_records(bases(lived.log)[1] + 3)
    lived.append(10)


def has_transactions_that_are_cut(lived: Lived) -> None:
    """One is aborted, one committed; of two the markers are cut, and they end the other way; one does not end."""
    lived.append(5)
    lived.append(20, PRODUCER, aborted=True)
    lived.append(10, PRODUCER + 1)
    lived.end(PRODUCER, commit=False)
    lived.end(PRODUCER + 1, commit=True)
    lived.append(10, PRODUCER + 2, aborted=True)
    lived.append(10, PRODUCER + 3)
    cut = lived.log.log_end_offset
    lived.end(PRODUCER + 2, commit=True)
    lived.end(PRODUCER + 3, commit=False)
    lived.append(10)
    lived.truncate(cut)
    lived.append(15)
    lived.end(PRODUCER + 2, commit=False)
    lived.end(PRODUCER + 3, commit=True)
    lived.append(5, PRODUCER)
    lived.end(PRODUCER, commit=True)
    lived.undecided = lived.log.log_end_offset
    lived.append(2, PRODUCER + 4)


LIVES: list[Callable[[Lived], None]] = [
    rolls,
    is_cut_in_an_older_segment,
    is_cut_at_its_tail,
    loses_its_first_records,
    has_transactions_that_are_cut,
]


def manager(*folders: Path) -> LogManager:
    config = ManagerConfig(log_dirs=tuple(map(str, folders)))
    return LogManager(OsWritableDisk(), config, SystemClock().now_ms, jitter, RandomIds().new_id, default=CONFIG)


def started(*folders: Path) -> LogManager:
    made = manager(*folders)
    assert made.start().unopened == ()
    return made


def live(running: LogManager) -> list[Lived]:
    """The logs of a directory, each after a life of its own, and all of them after a tick in the middle of it."""
    lived = [Lived(running, partition) for partition in running.partitions()]
    assert len(lived) >= len(LIVES)
    for at, one in enumerate(lived):
        LIVES[at % len(LIVES)](one)
    assert running.tick(SystemClock().now_ms() + 600_000) == ()
    for one in lived:
        one.append(7)
        assert len(bases(one.log)) > 2
    return lived


def consumed(address: str, partitions: int, isolation: str) -> dict[int, list[Read]]:
    """Every record that a consumer is given, by partition."""
    config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer(
        {
            **config,
            **real_kafka.AT_ONCE,
            "enable.auto.commit": False,
            "log_level": 0,
            "check.crcs": True,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([Position("lived", number, OFFSET_BEGINNING) for number in range(partitions)])
    found: dict[int, list[Read]] = {number: [] for number in range(partitions)}
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(20)
        assert message is not None
        error, number, offset = message.error(), message.partition(), message.offset()
        assert number is not None
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add(number)
        else:
            assert offset is not None
            found[number].append((offset, message.key(), message.value()))
    consumer.close()
    return found


def test_a_consumer_reads_every_record_of_logs_that_we_rolled_and_cut_and_stopped_or_left_as_killed(tmp_path: Path) -> None:
    stopped, killed = tmp_path / "data", tmp_path / "more"
    count = 2 * len(LIVES)
    with real_kafka.broker(tmp_path, log_dirs=f"{stopped},{killed}") as address:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        admin.create_topics([NewTopic("lived", count, 1, config={"retention.ms": "-1"})])["lived"].result()

    ours = started(stopped)
    lived = live(ours)
    assert ours.stop() == ()
    left = started(killed)
    lived += live(left)
    left._disk.unlock(f"{killed}/{LOCK}")  # all that its end as a process would have done
    assert (stopped / CLEAN_SHUTDOWN).exists()
    assert not (killed / CLEAN_SHUTDOWN).exists()

    with real_kafka.broker(tmp_path, log_dirs=f"{stopped},{killed}") as address:
        everything = consumed(address, count, "read_uncommitted")
        committed = consumed(address, count, "read_committed")
    assert sorted(one.partition.partition for one in lived) == list(range(count))
    for one in lived:
        number = one.partition.partition
        assert everything[number] == one.records
        assert committed[number] == one.committed
    assert {len(one.records) - len(one.committed) > 30 for one in lived} == {True, False}

    again = started(stopped, killed)
    for one in lived:
        assert again.log(one.partition).log_end_offset == one.records[-1][0] + 1
    assert again.stop() == ()
