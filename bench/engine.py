"""The log engine beside Kafka's own, in one run on the same bytes: recovery, appends, look-ups, start-up.

Kafka's engine runs in a process of its own and has been warmed up by the rounds before the best one. Where a call is measured
(append, look-up) both sides time the calls alone; where a start is, the whole of it.
"""

import os
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from kafka_log import NOW, KafkaLog, kafka_log

from local_log.engine.config import read_config
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.formats.checksum import crc32c
from local_log.formats.filenames import LOG, OFFSET_INDEX, TIME_INDEX, offset_file
from local_log.os_disk import OsWritableDisk

T0 = 1_700_000_000_000
LOG_BYTES = 500_000_000
LOOK_UPS = 20_000
SEGMENTS = 10_000
_HEADER = struct.Struct(">hiqqqhii")


def batch(offset: int, records: int, value_bytes: int, producer_id: int = -1, sequence: int = -1) -> bytes:
    """A record batch of `records` equal records from `offset` on; record i of the log is of T0 + i ms."""
    body = b"".join(_record(i, os.urandom(value_bytes)) for i in range(records))
    times = T0 + offset, T0 + offset + records - 1
    head = _HEADER.pack(0, records - 1, *times, producer_id, 0 if producer_id >= 0 else -1, sequence, records)
    return struct.pack(">qiibI", offset, 9 + len(head) + len(body), 0, 2, crc32c(head + body)) + head + body


def _record(at: int, value: bytes) -> bytes:
    body = b"\0" + _varint(at) + _varint(at) + _varint(-1) + _varint(len(value)) + value + b"\0"
    return _varint(len(body)) + body


def _varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def many(records: int, value_bytes: int, size: int) -> bytes:
    """A log of about `size` bytes: one batch over and over, but for its base offset, which is under no checksum."""
    one = batch(0, records, value_bytes, producer_id=5000, sequence=0)
    rows = np.tile(np.frombuffer(one, np.uint8), (size // len(one), 1))
    rows[:, :8] = (np.arange(len(rows)) * records).astype(">i8").view(np.uint8).reshape(-1, 8)
    return rows.tobytes()


def ours(folder: Path, *, clean: bool = False) -> UnifiedLog:
    """The log in a folder, opened by our engine with Kafka's defaults."""
    return open_log(OsWritableDisk(), str(folder), read_config({}), lambda: NOW, lambda: 0.0, clean=clean)


def seconds(act: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def only_log(folder: Path) -> None:
    """Leaves nothing in a folder but the log files: the indexes and snapshots of the last round go."""
    for file in folder.iterdir():
        if file.suffix != LOG:
            file.unlink()


def recovery(out: Path, kafka: KafkaLog, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Seconds to recover an unflushed log of 500 MB."""
    for what, records, value in (("batches of 16 KB", 16, 990), ("batches of one record of 200 bytes", 1, 195)):
        folder = out / "recovered-0"
        folder.mkdir()
        (folder / offset_file(0, LOG)).write_bytes(many(records, value, LOG_BYTES))

        def by_us(folder: Path = folder) -> float:
            only_log(folder)
            (folder / offset_file(0, OFFSET_INDEX)).touch()
            return seconds(lambda: ours(folder).close())

        def by_kafka(folder: Path = folder) -> float:
            only_log(folder)
            (folder / offset_file(0, OFFSET_INDEX)).touch()
            return seconds(lambda: (done(kafka, "open", folder, 0, 0, "unclean"), done(kafka, "close")))

        yield f"recovery of 500 MB in {what}, s", *best(by_us, by_kafka, rounds)
        shutil.rmtree(folder)


def appends(out: Path, kafka: KafkaLog, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Microseconds to append one batch."""
    shapes = ((16_000, 16, 4000), (16_000, 1, 4000), (256_000, 16, 500), (256_000, 1, 500), (200, 1, 20_000))
    for size, records, times in shapes:
        source, target = out / "source-0", out / "target-0"
        source.mkdir()
        written = [batch(i * records, records, size // records - 10, 7, i * records) for i in range(times)]
        (source / offset_file(0, LOG)).write_bytes(b"".join(written))
        for leader in (False, True):
            sent = [bytes(8) + one[8:] for one in written] if leader else written

            def by_us(target: Path = target, sent: list[bytes] = sent, leader: bool = leader) -> float:
                shutil.rmtree(target, ignore_errors=True)
                log = ours(target, clean=True)
                append = log.append_as_leader if leader else log.append_as_follower
                spent = 0.0
                for one in sent:
                    fresh = bytes(bytearray(one))  # as off a socket, and as the other side has it: just written, so in the cache
                    start = time.perf_counter()
                    append(fresh, 0)
                    spent += time.perf_counter() - start
                log.close()
                return spent / len(sent) * 1e6

            def by_kafka(source: Path = source, target: Path = target, leader: bool = leader, times: int = times) -> float:
                shutil.rmtree(target, ignore_errors=True)
                done(kafka, "open", target, 0, 0, "clean")
                spent = float(done(kafka, "replay", source, *([0] if leader else []))["seconds"])
                done(kafka, "close")
                return spent / times * 1e6

            role = "leader, with a producer id" if leader else "follower"
            by_kafka()  # until Java has compiled it
            unit = f"{size // 1000} KB" if size >= 1000 else f"{size} bytes"
            yield f"append as {role}, {unit}, {records} record{'s'[: records - 1]}, µs", *best(by_us, by_kafka, rounds)
        shutil.rmtree(source)
        shutil.rmtree(target)


def look_ups(out: Path, kafka: KafkaLog, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Microseconds for one look-up in a log of 100 MB in 10 segments; that of an offset gives a range of the log's file."""
    folder = out / "asked-0"
    log = open_log(
        OsWritableDisk(), str(folder), read_config({"segment.bytes": "10485760"}), lambda: NOW, lambda: 0.0, clean=True
    )
    for at in range(100_000_000 // 16_000):
        log.append_as_follower(batch(at * 16, 16, 990), 0)
    end = log.log_end_offset
    log.close()
    for what, ask in (("offsets", UnifiedLog.fetch), ("timestamps", UnifiedLog.offset_for)):

        def by_us(ask: Callable[..., object] = ask, what: str = what) -> float:
            log = ours(folder, clean=True)
            asked = (np.random.default_rng(7).random(LOOK_UPS) * end).astype(int).tolist()
            questions = [(offset, 1) for offset in asked] if what == "offsets" else [(T0 + offset,) for offset in asked]
            spent = seconds(lambda: [ask(log, *question) for question in questions])
            log.close()
            return spent / LOOK_UPS * 1e6

        def by_kafka(what: str = what) -> float:
            done(kafka, "open", folder, 0, 0, "clean")
            spent = float(done(kafka, "lookup", what, LOOK_UPS, end, T0)["seconds"])
            done(kafka, "close")
            return spent / LOOK_UPS * 1e6

        yield f"look-up of {what}, µs", *best(by_us, by_kafka, rounds)
    shutil.rmtree(folder)


def start_up(out: Path, kafka: KafkaLog, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Seconds to open a log of 10,000 segments after a clean shutdown."""
    folder = out / "long-0"
    folder.mkdir()
    for at in range(SEGMENTS):
        (folder / offset_file(at, LOG)).write_bytes(batch(at, 1, 100))
        (folder / offset_file(at, OFFSET_INDEX)).write_bytes(b"")
        (folder / offset_file(at, TIME_INDEX)).write_bytes(struct.pack(">qi", T0 + at, 0))

    def by_us() -> float:
        log: list[UnifiedLog] = []
        spent = seconds(lambda: log.append(ours(folder, clean=True)))
        log[0].close()
        return spent

    def by_kafka() -> float:
        spent = seconds(lambda: done(kafka, "open", folder, 0, 0, "clean"))
        done(kafka, "close")
        return spent

    yield "start with 10,000 segments, s", *best(by_us, by_kafka, rounds)
    shutil.rmtree(folder)


def done(kafka: KafkaLog, *words: object) -> dict[str, object]:
    """An answer that is no refusal."""
    answer = kafka.ask(*words)
    if "error" in answer:
        raise RuntimeError(f"{words[0]}: {answer}")
    return answer


def best(by_us: Callable[[], float], by_kafka: Callable[[], float], rounds: int) -> tuple[float, float]:
    """The best of each, taking turns: neighbours on the machine only ever slow things down."""
    pairs = [(by_us(), by_kafka()) for _ in range(rounds)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def run(out: Path, rounds: int) -> None:
    """Prints every figure with the ratio Kafka / ours: above 1, we are the faster."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    print(f"{'The log engine':64} {'ours':>9} {'Kafka':>9} {'ratio':>7}")
    with kafka_log() as kafka:
        for measure in (recovery, appends, look_ups, start_up):
            for what, us, them in measure(out, kafka, rounds):
                print(f"{what:64} {us:9.2f} {them:9.2f} {them / us:7.2f}", flush=True)
    shutil.rmtree(out)
