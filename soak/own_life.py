"""A process that owns a log directory: it produces, reads, archives and drops until it is killed. `soak_own` starts and kills it.

    python soak/own_life.py FOLDER NUMBER BYTES_PER_SECOND

What is acknowledged and flushed goes into FOLDER/acknowledged/NUMBER, a line of `ENTRY` for each batch. What a read gives is held
against it at once. Everything that is wrong goes into FOLDER/wrong, a sentence a line.
"""

import json
import random  # noqa: TID251  # seeded
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent), str(HERE)]

from failing_agent import Failing  # noqa: E402
from own_load import (  # noqa: E402
    ENTRY,
    KEYS_EACH,
    MAYBE,
    PARTITIONS,
    RECORDS,
    TOPICS,
    Known,
    acknowledged,
    batch,
    marker,
    settings_of,
)
from own_verify import verify  # noqa: E402

from local_log.engine.manager.config import ManagerConfig  # noqa: E402
from local_log.engine.memory_records import memory_batches  # noqa: E402
from local_log.engine.producers.state import Origin  # noqa: E402
from local_log.engine.unified_log import UnifiedLog  # noqa: E402
from local_log.errors import NotFound  # noqa: E402
from local_log.formats.filenames import TopicPartition  # noqa: E402
from local_log.log_reader import open_log as open_reader  # noqa: E402
from remote import archive  # noqa: E402
from remote.keys import PartitionPath  # noqa: E402
from remote.store import open as stores  # noqa: E402
from tiering.local_tier.local_retention import retain  # noqa: E402
from tiering.local_tier.local_tier import LocalTier  # noqa: E402
from tiering.local_tier.reads import TierReads  # noqa: E402
from tiering.machine import CLOCK, IDS, writable_disk  # noqa: E402
from tiering.offload.copy import OffloadRun, offload  # noqa: E402
from tiering.offload.due import plan  # noqa: E402
from tiering.read.live_log import LiveLog  # noqa: E402

READ_PAUSE_S = 0.1
"""With a fifth of it three readers took 15 times what is produced, and the producer did not reach its rate on two cores."""
SWITCH_S = 0.0005
"""Of the default of 5 ms each of eight threads takes its share whenever the producer has waited for the disk."""


@dataclass
class Owner:
    """The directory, its archive, and what is known of both."""

    folder: Path
    number: int
    known: list[Known] = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    is_over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.known = acknowledged(self.folder)
        self.store = Failing(stores.open_backend("s3://soak/kafka"))
        stores.open_backend = lambda url: self.store  # type: ignore[assignment,return-value]
        self.retried = stores.open_store("s3://soak/kafka")
        config = ManagerConfig(
            log_dirs=(str(self.folder / "broker" / "data"),), initial_task_delay_ms=1_000, retention_check_interval_ms=2_000,
            flush_offset_checkpoint_interval_ms=2_000, flush_start_offset_checkpoint_interval_ms=2_000,
        )  # fmt: skip
        self.tier = LocalTier(writable_disk(), config, CLOCK.now_ms, random.Random(self.number).random, IDS.new_id)
        started = self.tier.start()
        if started.unopened or started.damaged:
            self.wrong(f"a start finds {started}")
        for topic, count in TOPICS.items():
            if topic not in self.tier.topics():
                self.tier.create_topic(topic, count, settings_of(topic))
            elif self.tier.topic(topic).config != settings_of(topic):  # a broker has created it
                self.tier.alter_configs(topic, settings_of(topic))
        while True:
            try:
                archive.create_archive(self.retried, CLOCK, IDS)
                break
            except MAYBE:
                continue
        self.reads = TierReads(self.tier, self.retried)
        self.live = [self.reads.log(p) for p in PARTITIONS]

    def log(self, partition: TopicPartition) -> UnifiedLog:
        return self.tier.log(partition)

    def path(self, partition: TopicPartition) -> PartitionPath:
        return PartitionPath(partition.topic, self.tier.topic(partition.topic).topic_id, partition.partition)

    def wrong(self, problem: str) -> None:
        """Notes what must not be."""
        with (self.folder / "wrong").open("a") as file:
            file.write(f"process {self.number}: {problem}\n".replace("\n", " ") + "\n")

    def loop(self, act: Callable[[], object], pause_s: float = 0) -> None:
        """Does something until the end; an exception is wrong, and ends it."""
        try:
            while not self.is_over.is_set():
                act()
                self.is_over.wait(pause_s)
        except BaseException:
            self.wrong(traceback.format_exc().replace("\n", " | "))
            raise

    # Producing

    def end_transactions(self) -> None:
        """What a coordinator does: it aborts the transactions of producers that are gone."""
        for partition in PARTITIONS:
            log = self.log(partition)
            for producer_id, producer in dict(log.producers.producers).items():
                if producer.txn_first_offset is not None:
                    log.append_as_leader(marker(producer_id, producer.epoch, commits=False), 0, Origin.COORDINATOR)

    def produce(self, which: int, number: int, sequence: int) -> int:
        """Appends a batch, and now and then ends the transaction; returns the bytes. `number` is the batch's in its partition."""
        partition, log = PARTITIONS[which], self.log(PARTITIONS[which])
        producer = (self.number + 1) * 1_000 + which if partition.topic == "transactional" else -1
        body = batch(partition.topic, which, number, producer, sequence)
        info = log.append_as_leader(body, 0)
        crc = memory_batches(body)[0].crc
        self.known[which][info.first_offset] = info.last_offset + 1, crc, number
        self.pending[which].append((info.first_offset, info.last_offset + 1, crc, number))
        if producer >= 0 and number % 5 == 4:
            log.append_as_leader(marker(producer, 0, commits=number % 3 > 0), 0, Origin.COORDINATOR)
        return len(body)

    def run_producer(self, bytes_per_second: int) -> None:
        """Produces at a rate into all partitions, one after the other."""
        self.pending: list[list[tuple[int, int, int, int]]] = [[] for _ in PARTITIONS]
        numbers = [max((number for _, _, number in known.values()), default=0) + 1_000 for known in self.known]
        sequences = [0] * len(PARTITIONS)
        started = time.monotonic()

        def produce() -> None:
            for which in range(len(PARTITIONS)):
                self.counts["bytes"] += self.produce(which, numbers[which], sequences[which])
                numbers[which] += 1
                sequences[which] += KEYS_EACH if PARTITIONS[which].topic == "compacted" else RECORDS
                ahead_s = self.counts["bytes"] / bytes_per_second - (time.monotonic() - started)
                if self.is_over.wait(max(0.0, ahead_s)):
                    return

        self.loop(produce)

    def acknowledge(self) -> None:
        """Flushes the logs, and then acknowledges what was appended before."""
        with (self.folder / "acknowledged" / f"{self.number:03d}").open("ab") as file:
            for which, partition in enumerate(PARTITIONS):
                appended, self.pending[which] = self.pending[which], []
                self.log(partition).flush()
                file.write(b"".join(ENTRY.pack(which, *entry) for entry in appended))
                self.counts["acknowledged"] += len(appended)
            file.flush()

    # Archiving

    def archive(self, partition: TopicPartition) -> None:
        """Copies what is inactive, then drops what the archive has. Compacted logs are copied, too, and kept."""
        log = self.log(partition)
        now = log.offsets
        reader = open_reader(log.folder.disk, log.folder.path, partition, now.local_log_start, now.high_watermark.offset)
        run = OffloadRun(self.retried, CLOCK, IDS, "soak", lambda _: None)  # type: ignore[arg-type]
        try:
            for done in offload(plan(reader, self.retried), run):
                if isinstance(done.error, MAYBE):
                    self.counts["archive failed"] += 1
                elif isinstance(done.error, NotFound):  # it was cleaned meanwhile
                    self.counts["changed meanwhile"] += 1
                elif done.error is not None:
                    self.wrong(f"{partition}: {done.error}")
                elif done.entry is not None:
                    self.counts["archived compacted" if partition.topic == "compacted" else "archived"] += 1
                    self.reads.committed(partition)
            if self.tier.is_tiered(partition):
                self.counts["dropped"] += retain(log, reader, self.retried, CLOCK.now_ms())
        except MAYBE:
            self.counts["archive failed"] += 1
        except NotFound:
            self.counts["changed meanwhile"] += 1

    # Reading

    def read_somewhere(self, choose: random.Random) -> None:
        """Some fetches in a row from a random offset on."""
        which = choose.randrange(len(PARTITIONS))
        live, now = self.live[which], self.log(PARTITIONS[which]).offsets
        if now.high_watermark.offset > now.log_start:
            offset = choose.randrange(now.log_start, now.high_watermark.offset)
            for _ in range(choose.randint(1, 5)):
                try:
                    following = self.read(which, live, offset, choose.choice((1, 100_000, 500_000)))
                except MAYBE:
                    self.counts["read failed"] += 1
                    return
                if following == offset:
                    return
                offset = following

    def read(self, which: int, live: LiveLog, offset: int, size: int) -> int:
        """One fetch, held against what is known; the offset after it."""
        is_compacted = PARTITIONS[which].topic == "compacted"
        is_archived = offset < self.log(PARTITIONS[which]).offsets.local_log_start
        records = live.fetch(offset, size).read()
        for one in memory_batches(records):
            if one.last_offset < offset or (one.base_offset > offset and not is_compacted) or not one.is_valid(records):
                self.wrong(f"{PARTITIONS[which]}: a fetch at {offset} gives {one}")
            if not is_compacted and one.base_offset in self.known[which]:
                end, crc, _ = self.known[which][one.base_offset]
                self.counts["compared archived" if is_archived else "compared"] += 1
                if (end, crc) != (one.last_offset + 1, one.crc):
                    self.wrong(f"{PARTITIONS[which]}: not what was acknowledged at {one.base_offset}: {one}, {(end, crc)}")
            offset = one.last_offset + 1
        return offset

    # All of it

    def live_on(self, bytes_per_second: int) -> None:
        """Starts all threads, and ticks until the end."""
        self.end_transactions()
        threads = [threading.Thread(target=self.run_producer, args=(bytes_per_second,), daemon=True)]
        threads[0].start()
        while not hasattr(self, "pending"):
            time.sleep(0.01)
        for number in range(3):
            choose = random.Random(self.number * 10 + number)
            threads.append(
                threading.Thread(target=self.loop, args=(lambda c=choose: self.read_somewhere(c), READ_PAUSE_S), daemon=True)
            )
        for half in (PARTITIONS[::2], PARTITIONS[1::2]):
            turn = iter_for_ever(half)
            threads.append(threading.Thread(target=self.loop, args=(lambda t=turn: self.archive(next(t)),), daemon=True))
        threads.append(threading.Thread(target=self.loop, args=(self.acknowledge, 0.5), daemon=True))
        for thread in threads[1:]:
            thread.start()
        self.loop(self.tick, 0.5)
        for thread in threads:
            thread.join()

    def tick(self) -> None:
        for problem in self.tier.tick():
            self.wrong(f"a tick: {problem}")
        local = sum(self.log(p).local.segments.size for p in PARTITIONS if p.topic != "compacted")
        memory = int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])
        line = {"local_bytes": local, "memory_kib": memory, "store_calls": self.store.made, **self.counts}
        (self.folder / "counts" / f"{self.number:03d}").write_text(json.dumps(line))


def iter_for_ever(items: Sequence[TopicPartition]) -> Iterator[TopicPartition]:
    while True:
        yield from items
        time.sleep(0.05)


def main() -> None:
    folder, number, rate = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    sys.setswitchinterval(SWITCH_S)
    owner = Owner(folder, number)
    (folder / "started").write_text(str(number))
    if rate:
        owner.live_on(rate)
        return
    report = verify(owner)
    errors = owner.tier.stop()
    if errors:
        owner.wrong(f"the stop: {errors}")
    (folder / "verified").write_text(json.dumps(report))


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        with (Path(sys.argv[1]) / "wrong").open("a") as file:
            file.write(f"process {sys.argv[2]} ends: {traceback.format_exc()!r}\n")
        sys.exit(1)
