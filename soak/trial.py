"""Two hard days of an operator in some minutes: a real broker, a real S3 server, an agent, and what goes wrong on the way.

    python soak/trial.py [--out trial-out]

The store goes away while records arrive; meanwhile some are deleted that were never archived (DeleteRecords), and so is a topic
that never rolled; a compacted topic loses its first records to the cleaner; in the end the broker's disk is lost and restored.
After each the commands are asked what an operator asks, and their answers are held against what is true. Prints JSON: each
question with its answer, and those that were `wrong`; the exit code is 1 if there are any.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent)]

import boto3  # noqa: E402
import real_kafka  # noqa: E402
import strict_s3  # noqa: E402
from trial_topics import Records, Topics  # noqa: E402

from local_log.errors import Unavailable  # noqa: E402
from tiering.agent.http import client as http_client  # noqa: E402

BROKER = {
    "log_segment_bytes": str(1 << 20),
    "replica_high_watermark_checkpoint_interval_ms": "300",
    "log_retention_check_interval_ms": "300",
    "log_cleaner_backoff_ms": "200",
    "log_segment_delete_delay_ms": "500",
}
ROLLED = {"retention.ms": "-1"}
COMPACTED = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": str(1 << 20), "segment.ms": "1000",
    "delete.retention.ms": "0", "min.compaction.lag.ms": "0",
}  # fmt: skip
OF_THE_CLUSTER = ("__cluster_metadata-0", "meta.properties", "bootstrap.checkpoint")
NOTICED_S = 30
"""Within this time an operator hears of a store that is dead."""

Asked = tuple[int, str]
"""An exit code, and what was printed, messages and data."""


@dataclass
class Trial:
    """The machines of the trial; `answers` are what was asked and told so far."""

    out: Path
    answers: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.address = f"127.0.0.1:{real_kafka.free_ports()[0]}"
        self.store_port = real_kafka.free_ports()[0]
        self.data = self.out / "broker" / "data"
        self.archive = "s3://trial/kafka"
        self.configuration = self.out / "tiering.toml"
        self.configuration.write_text(
            f'log.dirs = ["{self.data}"]\narchive.url = "{self.archive}"\ntopics.exclude = ["__*"]\n'
            f'agent.state.dir = "{self.out / "state"}"\nagent.http.address = "{self.address}"\n'
            'agent.tasks = ["copy", "sweep"]\nremote.log.manager.task.interval.ms = 500\n'
            "remote.log.manager.task.retry.backoff.max.ms = 2000\n"
        )
        self.environment = {
            **os.environ, "PYTHONPATH": str(HERE.parent), "TIERING_CONFIG": str(self.configuration), "COLUMNS": "200",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.store_port}", "AWS_ACCESS_KEY_ID": strict_s3.ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": strict_s3.SECRET_KEY, "AWS_DEFAULT_REGION": "us-east-1",
        }  # fmt: skip

    def tiering(self, *args: object, seconds: float = 120) -> Asked:
        command = [sys.executable, "-m", "tiering", *map(str, args)]
        done = subprocess.run(command, env=self.environment, cwd=self.out, capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout + done.stderr

    def check(self, question: str, holds: object, answer: object) -> None:
        """Notes the answer, and the question as wrong where it does not hold."""
        self.answers[question] = answer if isinstance(answer, int | float | str | None) else str(answer)[:2_000]
        if not holds:
            self.wrong.append(f"{question}: {answer}")

    def status(self) -> dict[str, Any]:
        return http_client.ask(self.address, "GET", "/status")

    def partition(self, topic: str, number: int = 0) -> dict[str, Any]:
        rows: dict[tuple[str, int], dict[str, Any]] = {(p["topic"], p["partition"]): p for p in self.status()["partitions"]}
        return rows[topic, number]

    def until(self, question: str, holds: Callable[[], object], seconds: float) -> None:
        """Waits until it holds, and notes after how many seconds it did."""
        started = time.monotonic()
        while time.monotonic() - started < seconds:
            try:
                if holds():
                    self.check(question, True, f"after {time.monotonic() - started:.1f} s")
                    return
            except (Unavailable, KeyError):
                pass
            time.sleep(0.25)
        self.check(question, False, f"not within {seconds} s; status: {self._last_status()}")

    def _last_status(self) -> str:
        try:
            return json.dumps(self.status())[:2_000]
        except Unavailable as e:
            return str(e)

    @contextmanager
    def agent(self) -> Iterator[None]:
        """The agent until the block ends, then stopped as systemd stops it."""
        with (self.out / "agent.err").open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "tiering", "agent"], env=self.environment, cwd=self.out, stderr=said
            )
            try:
                yield
                process.send_signal(signal.SIGTERM)
                self.check("the agent stops with exit code 0", process.wait(60) == 0, process.returncode)
            finally:
                process.kill()
        text = (self.out / "agent.err").read_text()
        self.check("the agent's log has no traceback", "Traceback" not in text, text[-500:])


def read(trial: Trial, topic: str, start: int = 0, records: int = 1_000_000) -> Records | str:
    """Records of `topic` from an offset on by `tiering fetch` of the archive alone; what was said where it failed."""
    args = ("fetch", "--archive", trial.archive, "--topic", topic, "--partition", 0, "--offset", start, "--max-records", records)
    command = [sys.executable, "-m", "tiering", *map(str, args), "--encoding", "base64", "--output", "jsonl"]
    env = {name: value for name, value in trial.environment.items() if name != "TIERING_CONFIG"}
    done = subprocess.run(command, env=env, cwd=trial.out, capture_output=True, text=True, timeout=120)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr[-1_000:]}"
    from base64 import b64decode

    rows = (json.loads(line) for line in done.stdout.splitlines())
    return {row["offset"]: b64decode(row["value"]) for row in rows}


def active(trial: Trial, topic: str) -> int:
    """The base offset of the active segment: what lies below it is due."""
    return max(int(file.stem) for file in (trial.data / f"{topic}-0").glob("*.log"))


def series(trial: Trial, name: str, **labels: str) -> float | None:
    """The sum of a series' samples with these labels; None where there is none."""
    text = http_client_text(trial.address, "/metrics")
    pattern = re.compile(rf"^{name}(?:\{{(.*)\}})? (\S+)$", re.MULTILINE)
    found = [float(v) for of, v in pattern.findall(text) if all(f'{k}="{x}"' in of for k, x in labels.items())]
    return sum(found) if found else None


def http_client_text(address: str, path: str) -> str:
    from urllib.request import urlopen

    with urlopen(f"http://{address}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


def first_day(trial: Trial, topics: Topics) -> None:
    """Everything works: topics arrive, and are archived."""
    topics.create({"orders": ROLLED, "clicks": ROLLED, "never-rolls": ROLLED, "gone": ROLLED, "sessions": COMPACTED})
    for topic in ("orders", "clicks"):
        topics.produce(topic, 4_000)
    topics.produce("never-rolls", 10)
    topics.produce("gone", 10)

    def is_archived() -> bool:
        return all(trial.partition(topic)["archived_up_to"] == active(trial, topic) > 0 for topic in ("orders", "clicks"))

    trial.until("the agent archives what is inactive", is_archived, 60)
    code, text = trial.tiering("status")
    trial.check("status says running", code == 0 and "running" in text, text.splitlines()[0])
    unprotected = trial.partition("never-rolls").get("unprotected_records")
    trial.check("status counts the active segment as unprotected", unprotected == 10, unprotected)


def outage(trial: Trial, topics: Topics) -> int:
    """The store is dead: told within 30 s. Meanwhile records are deleted that were not archived; returns up to which offset."""
    topics.produce("orders", 4_000)
    topics.produce("clicks", 3_000)
    for question, holds in {
        "the lag grows while the store is dead": lambda: trial.partition("orders")["lag_bytes"] > 2 << 20,
        "store_failing is 1": lambda: series(trial, "kafka_tiering_store_failing") == 1,
        "status has since when": lambda: trial.status().get("store_failing_since_ms"),
    }.items():
        trial.until(question, holds, NOTICED_S)
    code, text = trial.tiering("status")
    trial.check("status says that the store fails, and since when", "store" in text and "since" in text, (code, text[:600]))
    before = active(trial, "orders") + 5
    topics.delete_records("orders", before)
    topics.delete("gone")
    folder = trial.data / "orders-0"
    trial.until("the broker deletes the segments", lambda: min(int(f.stem) for f in folder.glob("*.log")) >= before - 5, 60)
    return before


def loss(trial: Trial, before: int, archived: int) -> None:
    """The store is back: the loss is told everywhere, until a human has seen it."""
    trial.until("the agent works again", lambda: trial.status()["state"] == "running", 60)
    trial.until("status has the lost offsets", lambda: trial.partition("orders").get("lost_offsets"), 60)
    lost = trial.partition("orders").get("lost_offsets")
    trial.check("exactly what left before it was archived is lost", lost == before - archived, (lost, archived, before))
    trial.until(
        "lost_offsets_total counts it",
        lambda: series(trial, "kafka_tiering_lost_offsets_total", topic="orders", partition="0") == before - archived,
        30,
    )
    trial.until("clicks is complete", lambda: trial.partition("clicks")["archived_up_to"] == active(trial, "clicks"), 60)
    code, text = trial.tiering("status")
    trial.check("the table of status names the loss", "lost" in text and "orders" in text, text[-1_500:])
    trial.check("the agent's log names the loss", "lost" in (trial.out / "agent.err").read_text(), "see agent.err")
    code, text = trial.tiering("scrub", "--deep")
    trial.check("scrub finds the loss", code == 6 and "lost" in text and "orders" in text, (code, text[-1_500:]))
    trial.check("scrub finds the topic that was deleted before it rolled", "gone" in text, text[-1_500:])
    for topic in ("orders", "gone"):
        code, text = trial.tiering("manifest", "acknowledge", "--topic", topic, "--yes")
        trial.check(f"somebody acknowledges what is lost of {topic}", code == 0, (code, text))
    code, text = trial.tiering("scrub", "--deep")
    trial.check("an acknowledged loss is no anomaly", code == 0, (code, text[-1_500:]))
    code, text = trial.tiering("offload")
    trial.check("an offload says nothing of it again", code == 0 and " lost " not in text, (code, text[-1_500:]))


def all_but_lost(trial: Trial, topics: Topics) -> None:
    """Of a topic that has lost offsets all others are in the archive, as they were acknowledged."""
    code, text = trial.tiering("manifest", "show", "--topic", "orders", "--output", "json")
    trial.check("manifest show lists the loss", code == 0, (code, text[-500:]))
    (manifest,) = json.loads(text[text.index("[") :])
    lost = {offset for loss in manifest["losses"] for offset in range(loss["start"], loss["end"])}
    known = {o: v for o, v in topics.acknowledged["orders"].items() if o < manifest["end_offset"] and o not in lost}
    found: Records = {}
    for start in sorted({0, *(offset + 1 for offset in lost if offset + 1 not in lost)}):
        if start < manifest["end_offset"]:
            end = min((offset for offset in lost if offset >= start), default=manifest["end_offset"])
            part = read(trial, "orders", start, end - start)
            trial.check(
                f"orders is read from {start} to {end}", isinstance(part, dict), part if isinstance(part, str) else len(part)
            )
            found |= part if isinstance(part, dict) else {}
    trial.check("all of orders that is not lost is there as it was acknowledged", found == known, (len(found), len(known)))


def compacted(trial: Trial, topics: Topics) -> None:
    """The cleaner empties the first offsets of a topic: whoever reads it gets the records that there are."""
    for _ in range(3):
        topics.produce("sessions", 2_500, keys=50)
        time.sleep(1.5)
    topics.produce("sessions", 1, keys=1)
    cleaned = trial.data / "cleaner-offset-checkpoint"
    trial.until("the broker compacts", lambda: "sessions 0" in cleaned.read_text(), 60)
    time.sleep(3)
    end = active(trial, "sessions")
    trial.until("the compacted topic is archived", lambda: trial.partition("sessions")["archived_up_to"] == end, 60)
    given = topics.consume("sessions", end)
    trial.check("its first offset was emptied", 0 not in given, min(given, default=None))
    found = read(trial, "sessions")
    same = isinstance(found, dict) and given.items() <= found.items()
    trial.check("fetch --offset 0 gives what a consumer gets", same, found if isinstance(found, str) else len(found))
    code, text = trial.tiering("expire", "-c", "retention.ms=1", "--dry-run", "--log-dir", trial.data)
    given_up = [line for line in text.splitlines() if line.startswith("sessions") and "compact" not in line]
    trial.check("a blanket retention.ms leaves it alone", not given_up and "compact" in text, (code, text[-1_500:]))


def lost_disk(trial: Trial, ends: Mapping[str, int]) -> None:
    """The broker's disk is lost; what was archived comes back by `restore`."""
    for path in trial.data.iterdir():
        if path.name not in OF_THE_CLUSTER:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    code, text = trial.tiering("restore", "--to", trial.data, "--topic", "orders", "--topic", "clicks", "--topic", "sessions")
    trial.check("restore puts it back", code == 0, (code, text[-1_500:]))
    with real_kafka.broker(trial.out / "broker", **BROKER) as address:
        topics = Topics(address)
        for topic, end in ends.items():
            found, given = read(trial, topic), topics.consume(topic, end)
            trial.check(f"a consumer gets all of {topic} that was archived", found == given, len(given))


def run(out: Path) -> Trial:
    """The whole way; raises what a machine of the trial fails with."""
    trial = Trial(out)
    with ExitStack() as store, real_kafka.broker(out / "broker", **BROKER) as address:
        url = store.enter_context(strict_s3.serving(out / "s3", trial.store_port))
        keys = {"aws_access_key_id": strict_s3.ACCESS_KEY, "aws_secret_access_key": strict_s3.SECRET_KEY}
        boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys).create_bucket(Bucket="trial")
        topics = Topics(address)
        with trial.agent():
            first_day(trial, topics)
            archived = trial.partition("orders")["archived_up_to"]
            store.close()
            before = outage(trial, topics)
            store.enter_context(strict_s3.serving(out / "s3", trial.store_port))
            loss(trial, before, archived)
            all_but_lost(trial, topics)
            compacted(trial, topics)
        code, text = trial.tiering("status")
        trial.check("without an agent status says so", code == 0 and "no agent" in text, text[:300])
        ends = {topic: active(trial, topic) for topic in ("clicks", "sessions")}
        for topic, end in ends.items():
            acknowledged = topics.acknowledged[topic]
            found = read(trial, topic)
            right = isinstance(found, dict) and all(acknowledged[o] == v for o, v in found.items())
            trial.check(f"every record of {topic} in the archive was acknowledged", right, end)
        whole = read(trial, "clicks")
        trial.check(
            "all of clicks is there",
            whole == {o: v for o, v in topics.acknowledged["clicks"].items() if o < ends["clicks"]},
            ends,
        )
        code, text = trial.tiering("scrub", "--deep")
        trial.check("a deep scrub finds nothing", code == 0, (code, text[-1_000:]))
    with strict_s3.serving(out / "s3", trial.store_port):
        lost_disk(trial, ends)
    return trial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("trial-out"))
    given = parser.parse_args()
    if given.out.exists():
        parser.error(f"{given.out} is there already; move it away, or say --out")
    given.out.mkdir(parents=True)
    trial = run(given.out.resolve())
    sys.stdout.write(json.dumps({"answers": trial.answers, "wrong": trial.wrong}, indent=1) + "\n")
    if trial.wrong:
        sys.exit(1)
    shutil.rmtree(given.out)


if __name__ == "__main__":
    main()
