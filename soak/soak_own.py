"""A process that owns a log directory, under load, killed again and again: `soak_agent.py --own` or `make soak ARGS="--own"`.

    python soak/soak_own.py [--minutes 10] [--kills 9] [--rate 10000000] [--out soak-out]

The process (`own_life.py`) produces into 50 partitions with all codecs, transactions and compacted topics, reads from three
threads at random offsets, archives to a strict S3 server of which one call in twenty fails, and keeps 64 MB of tiered topics
locally. In the end every batch that was acknowledged and flushed is read back, byte for byte, from whichever tier has it; of
compacted topics the newest value of every key. Then a broker starts on the directory. Prints JSON; the exit code is 1 if anything
is wrong.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent), str(HERE)]

import real_kafka  # noqa: E402
import strict_s3  # noqa: E402
from confluent_kafka import KafkaException, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # noqa: E402
from own_load import TOPICS  # noqa: E402

from remote.read.context import ReadContext  # noqa: E402
from remote.scrub.budget import RequestBudget  # noqa: E402
from remote.scrub.finding import NOTES  # noqa: E402
from remote.scrub.scrub import scrub  # noqa: E402
from remote.scrub.settings import ScrubSettings  # noqa: E402
from remote.store.open import open_store  # noqa: E402

START_S_MAX, VERIFY_S_MAX = 120, 1_800


def environment(url: str) -> dict[str, str]:
    return {
        **os.environ, "PYTHONPATH": str(HERE.parent), "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": strict_s3.ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": strict_s3.SECRET_KEY, "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip


class Process:
    """The owner of the directory, one life after the other."""

    def __init__(self, out: Path, url: str) -> None:
        self.out = out
        self._env = environment(url)
        self.starts_s: list[float] = []
        self.lives = 0

    def start(self, rate: int) -> subprocess.Popen[bytes]:
        """The next one, once it has recovered the directory."""
        (self.out / "started").unlink(missing_ok=True)
        began = time.monotonic()
        command = [sys.executable, str(HERE / "own_life.py"), str(self.out), str(self.lives), str(rate)]
        with (self.out / "said").open("ab") as said:
            process = subprocess.Popen(command, env=self._env, stderr=said, stdout=said)
        while not (self.out / "started").exists():
            if process.poll() is not None or time.monotonic() - began > START_S_MAX:
                process.kill()
                raise RuntimeError(f"process {self.lives} does not start, see {self.out / 'said'}")
            time.sleep(0.05)
        self.starts_s.append(round(time.monotonic() - began, 1))
        self.lives += 1
        return process


def soak(out: Path, minutes: float, kills: int, rate: int) -> dict[str, Any]:
    """Runs it and gives what it saw; `wrong` is empty where nothing was lost."""
    for name in ("acknowledged", "counts", "store"):
        (out / name).mkdir()
    wrong: list[str] = []
    with real_kafka.broker(out / "broker") as address:
        topics = [NewTopic(topic, count, 1, config={"retention.ms": "-1"}) for topic, count in TOPICS.items()]
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        for future in admin.create_topics(topics).values():
            future.result()
    with strict_s3.serving(out / "store") as url:
        (out / "store" / "buckets" / "soak").mkdir()
        process = Process(out, url)
        local: list[int] = []
        for _ in range(kills):
            run = process.start(rate)
            until = time.monotonic() + minutes * 60 / kills
            while time.monotonic() < until and run.poll() is None:
                time.sleep(1)
                local.append(_counts(out, process.lives - 1).get("local_bytes", 0))
            if run.poll() is not None:
                wrong.append(f"process {process.lives - 1} has ended by itself, with {run.returncode}")
            run.kill()
            run.wait()
        wrong += unsound(url)
        last = process.start(0)
        if last.wait(VERIFY_S_MAX):
            wrong.append(f"the process that reads everything back ends with {last.returncode}")
    if (out / "wrong").exists():
        wrong += (out / "wrong").read_text().splitlines()
    verified = json.loads((out / "verified").read_text()) if (out / "verified").exists() else None
    if verified:
        wrong += given_back(out, verified.pop("ends"))
    counts = [_counts(out, life) for life in range(kills)]
    total = {name: sum(life.get(name, 0) for life in counts) for name in sorted({name for life in counts for name in life})}
    return {
        "kills": kills,
        "starts_s": process.starts_s,
        "local_mb": {"median": sorted(local)[len(local) // 2] / 1e6, "most": max(local) / 1e6},
        "memory_mib_most": max(life.get("memory_kib", 0) for life in counts) >> 10,
        "counts": {name: count for name, count in total.items() if name not in ("local_bytes", "memory_kib")},
        "read_back": verified,
        "wrong": wrong,
    }


def unsound(url: str) -> list[str]:
    """What a deep scrub finds wrong with the archive."""
    os.environ |= environment(url)
    store = open_store("s3://soak/kafka")
    found = scrub(RequestBudget(store), ReadContext().decoded, ScrubSettings(deep=True), time.time_ns() // 1_000_000)  # noqa: TID251
    return [f"scrub: {f.kind} {f.key}: {f.problem}" for f in found if f.kind not in NOTES and f.kind != "orphan"]


def given_back(out: Path, ends: dict[str, int]) -> list[str]:
    """What is wrong with a broker that starts on the directory: it has to have the same log end offsets."""
    with real_kafka.broker(out / "broker") as address:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        until = time.monotonic() + START_S_MAX
        while True:
            try:
                told = {name: _end(admin, *name.rsplit("-", 1)) for name in ends}
                return [f"a broker has {name} up to {told[name]}, not {end}" for name, end in ends.items() if told[name] != end]
            except KafkaException as e:  # it is not the leader of each partition yet
                if time.monotonic() > until:
                    return [f"a broker does not tell the ends of its logs: {e}"]
                time.sleep(0.5)


def _end(admin: AdminClient, topic: str, partition: str) -> int:
    (found,) = admin.list_offsets({TopicPartition(topic, int(partition)): OffsetSpec.latest()}).values()
    end: int = found.result().offset
    return end


def _counts(out: Path, life: int) -> dict[str, int]:
    try:
        found: dict[str, int] = json.loads((out / "counts" / f"{life:03d}").read_text())
    except (FileNotFoundError, json.JSONDecodeError):  # not yet, or half written
        return {}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--own", action="store_true", help="this one, also by soak_agent.py")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=9)
    parser.add_argument("--rate", type=int, default=10_000_000, help="bytes a second that are produced")
    parser.add_argument("--out", type=Path, default=Path("soak-out"))
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"{given.out} is there already; move it away, or say --out")
    given.out.mkdir(parents=True)
    report = soak(given.out.resolve(), given.minutes, given.kills, given.rate)
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if report["wrong"]:
        sys.exit(1)
    shutil.rmtree(given.out)


if __name__ == "__main__":
    main()
