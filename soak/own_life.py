"""A process that owns a log directory: it produces, reads, archives and drops until it is killed. `soak_own` starts and kills it.

    python soak/own_life.py FOLDER NUMBER BYTES_PER_SECOND

What is acknowledged and flushed goes into FOLDER/acknowledged/NUMBER, a line of `ENTRY` for each batch. What a read gives is held
against it at once. Everything that is wrong goes into FOLDER/wrong, a sentence a line.
"""

import functools
import json
import os
import random  # noqa: TID251  # seeded
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent), str(HERE)]

import hand_made  # noqa: E402
from failing_agent import Failing  # noqa: E402

from local_log.engine.manager.config import ManagerConfig  # noqa: E402
from local_log.engine.memory_records import memory_batches  # noqa: E402
from local_log.engine.producers.state import Origin  # noqa: E402
from local_log.engine.unified_log import UnifiedLog  # noqa: E402
from local_log.errors import LogError, NotFound, Unavailable, Unknown  # noqa: E402
from local_log.formats.filenames import TopicPartition  # noqa: E402
from local_log.formats.record import Codec  # noqa: E402
from local_log.log_reader import open_log as open_reader  # noqa: E402
from remote import archive  # noqa: E402
from remote.keys import PartitionPath  # noqa: E402
from remote.store import open as stores  # noqa: E402
from tiering.local_tier.local_retention import retain  # noqa: E402
from tiering.local_tier.local_tier import LocalTier  # noqa: E402
from tiering.local_tier.reads import TierReads  # noqa: E402
from tiering.machine import CLOCK, IDS, writable_disk  # noqa: E402
from tiering.offload.copy import OffloadRun, offload, plan  # noqa: E402
from tiering.read.live_log import LiveLog  # noqa: E402

TOPICS = {"plain": 25, "transactional": 15, "compacted": 10}
TIERED_PARTITIONS = TOPICS["plain"] + TOPICS["transactional"]
SEGMENT_BYTES, LOCAL_BYTES = 512 << 10, 64 << 20
CONFIG = {"segment.bytes": str(1 << 20), "internal.segment.bytes": str(SEGMENT_BYTES), "file.delete.delay.ms": "1000"}
TIERED = {"remote.storage.enable": "true", "retention.ms": "-1"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3", "segment.ms": "10000"}
KEYS, KEYS_EACH = 2_000, 40
BATCH_BYTES = 40 << 10
ENTRY = Struct(">HqqIq")
"""Which of `PARTITIONS`, base offset, end offset, CRC of the batch, and its number among those of its partition."""
PARTITIONS = tuple(TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count))
MAYBE = (Unavailable, Unknown)
SWITCH_S = 0.0005
"""Of the default of 5 ms each of eight threads takes its share whenever the producer has waited for the disk."""
FAILS_MAX = 20
"""Reads in a row of one offset that the store may fail."""

Known = dict[int, tuple[int, int, int]]
"""Of one partition: end offset, CRC and number by base offset."""


def settings_of(topic: str) -> dict[str, str]:
    """The topic's own settings: so many bytes locally that all partitions have LOCAL_BYTES with their active segments."""
    if topic == "compacted":
        return CONFIG | COMPACTED
    return CONFIG | TIERED | {"local.retention.bytes": str(LOCAL_BYTES // TIERED_PARTITIONS - 2 * SEGMENT_BYTES)}


def acknowledged(folder: Path) -> list[Known]:
    """What all processes so far have acknowledged, by partition."""
    found: list[Known] = [{} for _ in PARTITIONS]
    for file in sorted((folder / "acknowledged").glob("*")):
        body = file.read_bytes()
        for which, base, end, crc, number in ENTRY.iter_unpack(body[: len(body) // ENTRY.size * ENTRY.size]):
            found[which][base] = end, crc, number
    return found


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
            threads.append(threading.Thread(target=self.loop, args=(lambda c=choose: self.read_somewhere(c), 0.02), daemon=True))
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


RECORDS = 4
SECTIONS = 32


def batch(topic: str, which: int, number: int, producer: int, sequence: int) -> bytes:
    """The batch of this number in its partition: half of it cannot be compressed."""
    codec = Codec(which % len(Codec))
    now = CLOCK.now_ms()
    compacted = topic == "compacted"
    made = section(codec, KEYS_EACH, number) if compacted else repeated_section(codec, number % SECTIONS)
    return hand_made.batch(
        section=made, count=KEYS_EACH if compacted else RECORDS, last_delta=(KEYS_EACH if compacted else RECORDS) - 1,
        attributes=codec | (hand_made.TRANSACTIONAL if producer >= 0 else 0), base_timestamp=now, max_timestamp=now,
        producer_id=producer, producer_epoch=0 if producer >= 0 else -1, base_sequence=sequence if producer >= 0 else -1,
    )  # fmt: skip


def section(codec: Codec, count: int, number: int) -> bytes:
    """So many compressed records; each value begins with the number."""
    filler = os.urandom(BATCH_BYTES // count // 2)
    filler += bytes(len(filler))
    keys = (b"%d" % ((number * KEYS_EACH + n) % KEYS) for n in range(count))
    return hand_made.compressed(
        codec, b"".join(hand_made.record(n, key=key, value=number.to_bytes(8, "big") + filler) for n, key in enumerate(keys))
    )


@functools.cache
def repeated_section(codec: Codec, number: int) -> bytes:
    """Made once: the load is the log's and the archive's, not that of a producer."""
    return section(codec, RECORDS, number)


def marker(producer: int, epoch: int, *, commits: bool) -> bytes:
    """A coordinator's end of a transaction."""
    now = CLOCK.now_ms()
    key = hand_made.COMMIT_KEY if commits else hand_made.ABORT_KEY
    return hand_made.batch(
        hand_made.record(0, key=key, value=bytes(6)), attributes=hand_made.TRANSACTIONAL | hand_made.CONTROL,
        base_timestamp=now, max_timestamp=now, producer_id=producer, producer_epoch=epoch,
    )  # fmt: skip


def iter_for_ever(items: Sequence[TopicPartition]) -> Iterator[TopicPartition]:
    while True:
        yield from items
        time.sleep(0.05)


# Verifying


def verify(owner: Owner) -> dict[str, Any]:
    """Reads every partition from its start to its end, and holds it against all that was ever acknowledged."""
    found: Counter[str] = Counter()
    for which, partition in enumerate(PARTITIONS):
        live, known = owner.live[which], dict(owner.known[which])
        newest: dict[int, int] = defaultdict(lambda: -1)
        now = owner.log(partition).offsets
        offset, failed, is_compacted = now.log_start, 0, partition.topic == "compacted"
        found["local log starts above 0"] += now.local_log_start > 0
        while offset < now.end.offset:
            following = offset
            try:
                records, failed = live.fetch(offset, 1 << 20).read(), 0
            except LogError as e:
                failed += 1
                if isinstance(e, MAYBE) and failed < FAILS_MAX:
                    continue
                owner.wrong(f"{partition}: {offset} cannot be read: {e}")
                break
            for one in memory_batches(records):
                if not one.is_valid(records) or one.last_offset < offset or (one.base_offset != offset and not is_compacted):
                    owner.wrong(f"{partition}: at {offset} lies {one}")
                if is_compacted:
                    note_newest(newest, records[one.position : one.position + one.size], known)
                elif one.base_offset in known:
                    found["batches"] += 1
                    if known.pop(one.base_offset)[:2] != (one.last_offset + 1, one.crc):
                        owner.wrong(f"{partition}: not what was acknowledged at {one.base_offset}: {one}")
                found["bytes"] += one.size
                offset = one.last_offset + 1
            if offset == following:
                break
        if is_compacted:
            check_newest(owner, partition, newest, known)
        elif known:
            owner.wrong(f"{partition}: {len(known)} acknowledged batches are not there, the first at {min(known)}")
    ends = {str(partition): owner.log(partition).log_end_offset for partition in PARTITIONS}
    return {**found, "ends": ends}


def note_newest(newest: dict[int, int], body: bytes, known: Known) -> None:
    """Notes the greatest number of a batch that each key has."""
    from local_log.formats.batches import decode, scan

    batches, _ = scan(body)
    for _, records in decode(body, batches):
        for key, value in zip(records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True):
            newest[int(key)] = max(newest[int(key)], int.from_bytes(value[:8], "big"))


def check_newest(owner: Owner, partition: TopicPartition, newest: dict[int, int], known: Known) -> None:
    """Each key's newest value is that of the last acknowledged batch with it, or a later one."""
    expected: dict[int, int] = {}
    for _, _, number in known.values():
        for n in range(KEYS_EACH):
            key = (number * KEYS_EACH + n) % KEYS
            expected[key] = max(expected.get(key, -1), number)
    lost = {key for key, number in expected.items() if newest[key] < number}
    if lost:
        owner.wrong(f"{partition}: the newest values of {len(lost)} keys are not there, as of {min(lost)}")


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
