"""The whole life of topics in one run: `make soak ARGS="--life"`.

    python soak/soak_life.py [--mb 1000] [--local-mb 64] [--topics 20] [--record-bytes 10000] [--seed 1] [--out soak-out]

Producers write so many MB into the topics of `tiering serve --own-log-dir` while a group reads them from the beginning;
segments are archived and leave the disk, which keeps --local-mb, so that the group reads over both tiers. The process is killed
three times. Then local.retention.ms=1 has all of it archived, the process is killed, the disk wiped, the log directory restored
from the archive, and a new process and the same producers go on, until a tenth more is written. The positions of the group and
the settings of the topics, which are not archived, are set again. In the end everything is read from the beginning: each
acknowledged record has to be there once, and whatever the group has been told has to agree. Prints JSON; the exit code is 1 if
anything is wrong.
"""

import argparse
import json
import random  # noqa: TID251  # of a seed
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent), str(HERE)]

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic  # noqa: E402
from histories.checker import anomalies  # noqa: E402
from histories.evidence import librdkafka_log  # noqa: E402
from histories.nemesis import Server  # noqa: E402
from histories.operations import Kind, Position, write_history  # noqa: E402
from histories.readers import COMMITTED, UNCOMMITTED, Assigned, Ends, Member, consumer_of  # noqa: E402
from histories.recorder import Recorder  # noqa: E402
from histories.writers import Places, Sender  # noqa: E402
from soak_history import CLIENTS_LOG, first_local, shown  # noqa: E402

GROUP = "readers"
MORE = 0.1
WAIT_S_MAX, COMMAND_S_MAX = 1_800, 900
SEGMENT_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class Size:
    """How much is written: so many bytes in all, before the disk is wiped, of which so many stay local."""

    bytes: int = 1_000_000_000
    local_bytes: int = 64_000_000
    topics: int = 20
    record_bytes: int = 10_000
    kills: int = 3

    @property
    def places(self) -> Places:
        return tuple((f"life{number:02d}", 0) for number in range(self.topics))

    @property
    def segment_bytes(self) -> int:
        """Half of what a partition may keep: the rest is its active segment."""
        return min(SEGMENT_BYTES_MAX, self.local_bytes // self.topics // 2)

    @property
    def config(self) -> dict[str, str]:
        """The settings of each topic. They are not in the archive."""
        local = self.local_bytes // self.topics - self.segment_bytes
        return {
            "internal.segment.bytes": str(self.segment_bytes), "local.retention.bytes": str(local), "retention.ms": "-1",
            "file.delete.delay.ms": "1000", "remote.storage.enable": "true",
        }  # fmt: skip


@dataclass
class Producing(Sender):
    """A sender that goes on until so many bytes are handed to it, at most `ahead` records of them not yet acknowledged."""

    record_bytes: int = 0
    batch_bytes: int = 50_000
    ahead: int = 2_000
    written: int = 0
    limit: int = 0
    pending: int = 0

    def run(self) -> None:
        patient = {"message.timeout.ms": 900_000, "request.timeout.ms": 30_000, "batch.size": self.batch_bytes}
        producer = self.producer(**{"enable.idempotence": True, **patient})
        while not self.is_over:
            producer.poll(0)
            self.pending = len(producer)
            if self.written < self.limit and self.pending < self.ahead:
                self.pending += 1
                self.send(producer, self.record_bytes)
                self.written += self.record_bytes
            else:
                producer.poll(0.02)
        producer.flush(WAIT_S_MAX)


@dataclass
class Life:
    """One run."""

    out: Path
    size: Size
    seed: int
    recorder: Recorder = field(default_factory=Recorder)
    wrong: list[str] = field(default_factory=list)
    took_s: dict[str, float] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        """What it saw; `wrong` is empty where nothing was lost."""
        began, chance = time.monotonic(), random.Random(self.seed)
        self.server = Server(self.out)
        self.server.start()
        try:
            self.create_topics()
            bytes_of = {"record_bytes": self.size.record_bytes, "batch_bytes": self.size.segment_bytes // 4}
            producers = [self.named(Producing, f"producer{number}", chance, **bytes_of) for number in range(2)]
            writing = [started(one) for one in producers]
            reading = self.start_readers(chance)
            self.write_and_kill(producers)
            self.end_readers(reading)
            positions = self.positions(chance)
            self.lose_the_disk(positions)
            reading = self.start_readers(chance)
            self.write(producers, int(self.size.bytes * (1 + MORE)))
            self.acknowledge(producers)
            self.wait("reading on", self.is_all_read)
            self.end_readers(reading)
            self.recorder.stopping.set()
            for thread in writing:
                thread.join(WAIT_S_MAX)
            self.read_back(chance)
            self.server.end(signal.SIGTERM)
        finally:
            self.recorder.stopping.set()
            if self.server.process is not None and self.server.process.poll() is None:
                self.server.process.kill()
                self.server.process.wait()
        self.took_s["all"] = round(time.monotonic() - began, 1)
        return self.report()

    def named(self, made: Any, process: str, chance: random.Random, **more: Any) -> Any:
        return made(process, self.server.address, self.recorder, random.Random(chance.random()), places=self.size.places, **more)

    def create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.server.address, "log_level": 0})
        for future in admin.create_topics(
            [NewTopic(topic, 1, 1, config=self.size.config) for topic, _ in self.size.places]
        ).values():
            future.result(60)

    def start_readers(self, chance: random.Random) -> list[threading.Thread]:
        self.members = [self.named(Loyal, f"reader{time.monotonic_ns()}-{number}", chance, group=GROUP) for number in range(3)]
        return [started(one) for one in self.members]

    def end_readers(self, reading: list[threading.Thread]) -> None:
        for member in self.members:
            member.leaving.set()
        for thread in reading:
            thread.join(WAIT_S_MAX)

    def write_and_kill(self, producers: list[Producing]) -> None:
        """Writes all but the tenth, with kills, and waits until the group has read it and the disk has what it may keep."""
        for number in range(1, self.size.kills + 2):
            self.write(producers, self.size.bytes * number // (self.size.kills + 1))
            if number <= self.size.kills:
                self.server.end(signal.SIGKILL)
                self.server.start()
        self.acknowledge(producers)
        self.wait("reading", self.is_all_read)
        self.wait("dropping", lambda: self.local_bytes() <= self.size.local_bytes)
        self.seen["begin in the archive"] = sum(first_local(self.folder(place)) > 0 for place in self.size.places)

    def write(self, producers: list[Producing], until: int) -> None:
        for one in producers:
            one.limit = until // len(producers)
        self.wait(f"writing {until / 1e6:.0f} MB", lambda: all(one.written >= one.limit for one in producers))
        self.seen["most local mb"] = round(max(self.seen.get("most local mb", 0), self.local_bytes() / 1e6), 1)

    def acknowledge(self, producers: list[Producing]) -> None:
        self.wait("acknowledging", lambda: not any(one.pending for one in producers))

    def lose_the_disk(self, positions: dict[tuple[str, int], int]) -> None:
        """Has the active segments archived, too, deletes the directory, restores it, and goes on."""
        self.set_config({"local.retention.ms": "1"})
        self.wait("archiving all", lambda: not self.local_bytes())
        self.server.end(signal.SIGKILL)
        shutil.rmtree(self.server.logs)
        self.command("restore", "restore", "--archive", str(self.out / "archive"), "--to", str(self.server.logs))
        self.server.start()
        self.set_config(self.size.config)
        self.set_positions(positions)

    def command(self, name: str, *words: str) -> None:
        began = time.monotonic()
        command = [sys.executable, "-m", "tiering", *words]
        done = subprocess.run(command, cwd=HERE.parent, check=False, capture_output=True, text=True, timeout=COMMAND_S_MAX)
        self.took_s[name] = round(time.monotonic() - began, 1)
        (self.out / f"{name}.txt").write_text(done.stdout + done.stderr)
        if done.returncode:
            raise RuntimeError(f"{name} ends with {done.returncode}: {done.stderr[-2000:]}")

    def positions(self, chance: random.Random) -> dict[tuple[str, int], int]:
        consumer = consumer_of(self.server.address, GROUP, COMMITTED)
        member = self.named(Member, "positions", chance, group=GROUP)
        found = member.told(consumer, [TopicPartition(*place) for place in self.size.places])
        consumer.close()
        return {
            place: offset for place, offset in zip(self.size.places, found, strict=True) if offset is not None and offset >= 0
        }

    def set_positions(self, positions: dict[tuple[str, int], int]) -> None:
        """As `kafka-consumer-groups --reset-offsets --from-file` does."""
        admin = AdminClient({"bootstrap.servers": self.server.address, "log_level": 0})
        invoked_ns = self.recorder.now_ns()
        wanted = ConsumerGroupTopicPartitions(GROUP, [TopicPartition(*place, offset) for place, offset in positions.items()])
        for future in admin.alter_consumer_group_offsets([wanted]).values():
            future.result(60)
        at = tuple(Position(f"{topic}-{number}", offset) for (topic, number), offset in positions.items())
        self.recorder.note("admin", Kind.COMMIT, invoked_ns, group=GROUP, positions=at)

    def set_config(self, config: dict[str, str]) -> None:
        """As `kafka-configs --alter` does."""
        admin = AdminClient({"bootstrap.servers": self.server.address, "log_level": 0})
        entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
        topics = [ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries) for topic, _ in self.size.places]
        for future in admin.incremental_alter_configs(topics).values():
            future.result(60)

    def is_all_read(self) -> bool:
        """Whether the group has read as many records as were acknowledged."""
        return self.recorder.counts["group has read"] >= self.recorder.counts["send ok"]

    def wait(self, name: str, is_done: Any) -> None:
        began = time.monotonic()
        sys.stderr.write(f"{name}\n")
        while not is_done():
            if time.monotonic() - began > WAIT_S_MAX:
                self.wrong.append(f"{name} takes more than {WAIT_S_MAX} s")
                return
            time.sleep(0.05)
        self.took_s[name] = round(time.monotonic() - began, 1)

    def read_back(self, chance: random.Random) -> None:
        began = time.monotonic()
        self.recorder.stopping.clear()
        consumer = consumer_of(self.server.address, "none", UNCOMMITTED)
        ends = self.named(Ends, "final-ends", chance).ends(consumer)
        consumer.close()
        if not self.named(Assigned, "final", chance).read_all(ends, WAIT_S_MAX):
            self.wrong.append("the last reader does not come to the end")
        self.took_s["reading back"] = round(time.monotonic() - began, 1)

    def folder(self, place: tuple[str, int]) -> Path:
        return self.server.logs / f"{place[0]}-{place[1]}"

    def local_bytes(self) -> int:
        """What the log directory has of the topics, without files that are being deleted."""
        sizes = (file_bytes(file) for place in self.size.places for file in self.folder(place).glob("*.log"))
        return sum(sizes)

    def report(self) -> dict[str, Any]:
        history = self.recorder.history()
        write_history(history, self.out / "history.jsonl")
        found, used = anomalies(history), resource.getrusage(resource.RUSAGE_CHILDREN)
        unknown = (
            [f"{self.recorder.counts['send unknown']} records are not acknowledged"]
            if self.recorder.counts["send unknown"]
            else []
        )
        self.wrong += [*self.server.wrong, *unknown, *shown(found)]
        return {
            "mb": self.size.bytes / 1e6,
            "operations": len(history),
            "told": dict(sorted(self.recorder.counts.items())),
            "took_s": self.took_s,
            "cpu_s_of_the_server_and_commands": round(used.ru_utime + used.ru_stime, 1),
            **self.seen,
            "anomalies": dict(Counter(one.name for one in found)),
            "wrong": self.wrong,
        }


@dataclass
class Loyal(Member):
    """A member that stays until it is told to leave, and counts what the group has read."""

    leaving: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        consumer: Consumer = self.joined()
        while not self.leaving.is_set() and not self.is_over:
            read = self.polled(consumer, 300)
            if read:
                self.commit(consumer)
            for _ in read:
                self.recorder.count("group has read")
        consumer.close()


def started(client: Any) -> threading.Thread:
    thread = threading.Thread(target=client.run, daemon=True)
    thread.start()
    return thread


def file_bytes(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--life", action="store_true", help="as said to make soak")
    parser.add_argument("--mb", type=float, default=1_000)
    parser.add_argument("--local-mb", type=float, default=64, help="what the log directory may keep of it")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--record-bytes", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("soak-out"))
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"{given.out} is there already; move it away, or say --out")
    given.out.mkdir(parents=True)
    size = Size(int(given.mb * 1e6), int(given.local_mb * 1e6), given.topics, given.record_bytes, given.kills)
    with librdkafka_log(given.out / CLIENTS_LOG):
        report = Life(given.out.resolve(), size, given.seed).run()
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if report["wrong"]:
        sys.exit(1)
    shutil.rmtree(given.out)


if __name__ == "__main__":
    main()
