"""An agent beside a real broker under load, with a byte limit, a store that fails one call in twenty, and a kill -9 each minute.

    python soak/soak_agent.py [--minutes 10] [--kill-every 60] [--rate 1000000] [--limit 4000000] [--out soak-out]

Everything that the broker has acknowledged is remembered by a hash, and each record that the archive has in the end is held
against it: every offset from the first one to the archive's end has to be there, once. Prints what it saw, as JSON: the lag and
the agent's memory over time, by lives, and what is wrong; the exit code is 1 if anything is. It takes some 2 * rate * minutes
of disk, and gives it back.
"""

import argparse
import importlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent)]

import real_kafka  # noqa: E402
from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from local_log.errors import Unavailable  # noqa: E402
from remote.read.context import ReadContext  # noqa: E402
from remote.scrub.budget import RequestBudget  # noqa: E402
from remote.scrub.finding import NOTES  # noqa: E402
from remote.scrub.scrub import scrub  # noqa: E402
from remote.scrub.settings import ScrubSettings  # noqa: E402
from remote.store.open import open_store  # noqa: E402
from tiering.agent.http import client as http_client  # noqa: E402
from tiering.api import open_reader  # noqa: E402

TOPICS = {"orders": 3, "payments": 1}
BROKER = {"replica_high_watermark_checkpoint_interval_ms": "300", "log_retention_check_interval_ms": "300"}
VALUE_BYTES = 1_000
CATCH_UP_S = 120


def digest(value: bytes) -> int:
    return int.from_bytes(blake2b(value, digest_size=8).digest(), "little")


@dataclass
class Load:
    """A producer that keeps to a rate; what the broker has acknowledged, by partition: a hash for each offset, in order."""

    address: str
    bytes_per_second: int
    acknowledged: dict[tuple[str, int], "array[int]"] = field(default_factory=lambda: defaultdict(lambda: array("Q")))
    out_of_order: int = 0
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        producer = Producer({"bootstrap.servers": self.address, "log_level": 0, "linger.ms": 5, "enable.idempotence": True})
        partitions = [(topic, number) for topic, numbers in TOPICS.items() for number in range(numbers)]
        started, count = time.monotonic(), 0
        while not self._over.is_set():
            topic, number = partitions[count % len(partitions)]
            value = b"%020d" % count + os.urandom(VALUE_BYTES - 20)
            producer.produce(topic, value, None, number, on_delivery=self._delivered)
            count += 1
            if count % 50 == 0:
                producer.poll(0)
                ahead_s = count * VALUE_BYTES / self.bytes_per_second - (time.monotonic() - started)
                self._over.wait(max(0.0, ahead_s))
        producer.flush()

    def stop(self) -> None:
        self._over.set()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            known = self.acknowledged[message.topic(), message.partition()]
            self.out_of_order += message.offset() != len(known)
            known.append(digest(message.value()))


@dataclass
class Life:
    """One agent, from its start to its kill."""

    samples: list[tuple[float, int, int, float]] = field(default_factory=list)
    """Seconds since the soak began, the agent's resident KiB, bytes of lag, and seconds of lag."""
    copied: int = 0


class Agent:
    """Agents, one after the other."""

    def __init__(self, logs: Path, out: Path, limit: int) -> None:
        port = real_kafka.free_ports()[0]
        self.address = f"127.0.0.1:{port}"
        settings = {
            "log.dirs": logs,
            "archive.url": out / "archive",
            "agent.state.dir": out / "state",
            "agent.http.address": self.address,
            "agent.tasks": "copy,sweep,scrub",
            "topics.exclude": "__*",
            "remote.log.manager.task.interval.ms": 1_000,
            "remote.log.manager.task.retry.backoff.max.ms": 5_000,
            "remote.log.manager.copy.max.bytes.per.second": limit,
            "sweep.interval.ms": 20_000,
            "sweep.grace.ms": 10_000,
            "scrub.interval.ms": 45_000,
        }
        self._command = [sys.executable, str(HERE / "failing_agent.py"), "agent"]
        self._command += [word for name, value in settings.items() for word in ("--override", f"{name}={value}")]
        self._said = (out / "agent.err").open("ab")
        self.lives: list[Life] = []
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        self.process = subprocess.Popen(self._command, stderr=self._said, env=env)
        self.lives.append(Life())

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def status(self) -> dict[str, Any] | None:
        try:
            return http_client.ask(self.address, "GET", "/status")
        except Unavailable:
            return None

    def sample(self, at_s: float) -> None:
        assert self.process is not None
        if (code := self.process.poll()) is not None:
            raise RuntimeError(f"the agent has ended by itself, with {code}; see agent.err")
        status = self.status()
        if status is not None and status["state"] != "starting":
            text = Path(f"/proc/{self.process.pid}/status").read_text()
            resident = int(text.partition("VmRSS:")[2].split()[0])
            life = self.lives[-1]
            life.samples.append((round(at_s, 1), resident, status["lag_bytes"], status["lag_ms"] / 1000))
            life.copied = sum(p["archived_segments"] for p in status["partitions"])


@contextmanager
def soaked_broker(out: Path) -> Iterator[str]:
    with real_kafka.broker(out / "broker", **BROKER) as address:
        config = {"segment.bytes": str(1 << 20), "retention.ms": "-1"}
        topics = [NewTopic(topic, partitions, 1, config=config) for topic, partitions in TOPICS.items()]
        admin = AdminClient({"bootstrap.servers": address})
        for future in admin.create_topics(topics).values():
            future.result()
        yield address


def soak(out: Path, minutes: float, kill_every_s: float, rate: int, limit: int) -> dict[str, Any]:
    """Runs it and gives what it saw; `wrong` is empty where nothing was lost."""
    logs = out / "broker" / "data"
    with soaked_broker(out) as address:
        load, agent = Load(address, rate), Agent(logs, out, limit)
        producing = threading.Thread(target=load.run)
        producing.start()
        agent.start()
        started = killed = time.monotonic()
        kills = 0
        while (now := time.monotonic()) - started < minutes * 60:
            time.sleep(1)
            agent.sample(now - started)
            if now - killed >= kill_every_s:
                agent.kill()
                agent.start()
                killed, kills = now, kills + 1
        load.stop()
        producing.join()
        caught_up = _caught_up(agent, started)
        code = agent.stop()
        active = {f"{topic}-{n}": _active(logs / f"{topic}-{n}") for topic, n in load.acknowledged}
    wrong = [*_lost(out / "archive", load, active), *_anomalies(out / "archive")]
    if not caught_up:
        wrong.append(f"the agent still lags {CATCH_UP_S} s after the load has ended")
    if code:
        wrong.append(f"the agent ended with exit code {code}")
    if load.out_of_order:
        wrong.append(f"{load.out_of_order} acknowledgements came out of order, so the hashes say nothing")
    return _report(agent, load, kills, wrong)


def _caught_up(agent: Agent, started: float) -> bool:
    until = time.monotonic() + CATCH_UP_S
    while time.monotonic() < until:
        time.sleep(1)
        agent.sample(time.monotonic() - started)
        status = agent.status()
        if status is not None and status["state"] == "running" and status["lag_segments"] == 0 and status["partitions"]:
            return True
    return False


def _active(folder: Path) -> int:
    """The base offset of the active segment: what lies below it is due."""
    return max(int(file.stem) for file in folder.glob("*.log"))


def _lost(archive: Path, load: Load, active: dict[str, int]) -> Iterator[str]:
    with open_reader(archive=str(archive)) as reader:
        for (topic, partition), known in sorted(load.acknowledged.items()):
            expected = 0
            for batch in reader.read(topic, partition, columns=("offset", "value")):
                for offset, value in zip(batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True):
                    if offset != expected:
                        yield f"{topic}-{partition}: offset {offset} where {expected} was expected"
                        expected = offset
                    if offset < len(known) and known[offset] != digest(value):
                        yield f"{topic}-{partition}: offset {offset} has another value than was acknowledged"
                    expected += 1
            if expected < active[f"{topic}-{partition}"]:
                yield f"{topic}-{partition}: archived up to {expected}, and due up to {active[f'{topic}-{partition}']}"


def _anomalies(archive: Path) -> Iterator[str]:
    store = open_store(str(archive))
    found = scrub(RequestBudget(store), ReadContext().decoded, ScrubSettings(deep=True), time.time_ns() // 1_000_000)  # noqa: TID251
    yield from (f"scrub: {f.kind} {f.key}: {f.problem}" for f in found if f.kind not in NOTES and f.kind != "orphan")


def _report(agent: Agent, load: Load, kills: int, wrong: list[str]) -> dict[str, Any]:
    samples = [sample for life in agent.lives for sample in life.samples]
    lags = [lag for _, _, lag, _ in samples]
    return {
        "records": sum(map(len, load.acknowledged.values())),
        "megabytes": round(sum(map(len, load.acknowledged.values())) * VALUE_BYTES / 1e6, 1),
        "kills": kills,
        "archived_segments": agent.lives[-1].copied,
        "lag_bytes": {"median": statistics.median(lags), "most": max(lags), "last": lags[-1]} if lags else None,
        "lag_s_most": max((s for _, _, _, s in samples), default=None),
        "memory_mib_by_life": [
            {"seconds": len(life.samples), "first": life.samples[0][1] >> 10, "most": max(s[1] for s in life.samples) >> 10,
             "last": life.samples[-1][1] >> 10}
            for life in agent.lives if life.samples
        ],
        "lag_over_time": [(at, lag) for at, _, lag, _ in samples[:: max(1, len(samples) // 60)]],
        "wrong": wrong,
    }  # fmt: skip


def main() -> None:
    for name in ("own", "history", "life"):
        if f"--{name}" in sys.argv:
            importlib.import_module(f"soak_{name}").main()
            return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", action="store_true", help="a process that owns its log directory instead: see soak_own.py")
    parser.add_argument("--history", action="store_true", help="clients of an endpoint instead: see soak_history.py")
    parser.add_argument("--life", action="store_true", help="topics from their first record to a lost disk: see soak_life.py")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kill-every", type=float, default=60, help="seconds between two kills")
    parser.add_argument("--rate", type=int, default=1_000_000, help="bytes a second that are produced")
    parser.add_argument("--limit", type=int, default=4_000_000, help="bytes a second that the agent may move, both directions")
    parser.add_argument("--out", type=Path, default=Path("soak-out"))
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"{given.out} is there already; move it away, or say --out")
    given.out.mkdir(parents=True)
    report = soak(given.out.resolve(), given.minutes, given.kill_every, given.rate, given.limit)
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if report["wrong"]:
        sys.exit(1)
    shutil.rmtree(given.out)


if __name__ == "__main__":
    main()
