"""What a new user does, from an empty folder and with nothing but the wheel: ten lines of configuration, an agent beside a
broker, a look at it, README's first commands, the broker's disk lost and restored, and everything that was archived read back.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from installed_wheel import Installed

from tiering.metrics.series import ALL

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(600),
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

TOPICS = {"orders": 3, "payments": 1}
PARTITIONS = [(topic, number) for topic, partitions in TOPICS.items() for number in range(partitions)]
RECORDS = 4_000
"""In each partition, of 1 KB: three segments of 1 MiB, and an active one."""
BROKER = {"log_segment_bytes": str(1 << 20), "replica_high_watermark_checkpoint_interval_ms": "300", "log_retention_ms": "-1"}
A_YEAR_AGO_MS, FROM_THEN_ON = 1763856000000, 1_000
"""The time for which README asks, and the first record that is as late; they are a second apart."""
README = Path(__file__).parents[2] / "README.md"
OF_THE_CLUSTER = ("__cluster_metadata-0", "meta.properties", "bootstrap.checkpoint")
"""What of the folder is the controller's, which in a cluster of more than one node has a disk of its own."""
WHERE_TOLD = {"kafka_tiering_unprotected_deletion_timestamp_seconds"}
"""Has no value where nobody says how long the broker keeps its logs, as these ten lines do not."""
OF_OWN_LOGS = ("kafka_log_logcleaner", "kafka_log_log_", "kafka_tiering_unflushed_records")
"""The broker tells of its own logs and their cleaner."""
CONFIGURATION = """\
log.dirs = ["{data}"]
archive.url = "{archive}"
topics.exclude = ["__*"]

agent.state.dir = "{state}"
agent.http.address = "{address}"
agent.tasks = ["copy", "sweep", "scrub"]

remote.log.manager.task.interval.ms = 1000
remote.log.manager.copy.max.bytes.per.second = 50000000
"""

Read = dict[tuple[str, int], dict[int, bytes]]
"""Values by offset, of each partition."""


@dataclass(frozen=True)
class Machine:
    """Where the wheel alone is installed; commands run in `folder`, in which there is only what the user puts there."""

    folder: Path
    environment: Installed

    def start(self, *args: object, **pipes: Any) -> "subprocess.Popen[str]":
        return self.environment.start(self.folder, "tiering", *args, **pipes)

    def tiering(self, *args: object) -> str:
        return self.environment.run(self.folder, "tiering", *args)


@pytest.fixture
def machine(environment: Installed, tmp_path: Path) -> Machine:
    (tmp_path / "empty").mkdir()
    return Machine(tmp_path / "empty", environment)


def produce(address: str) -> Read:
    """Fills the topics; what the broker has acknowledged."""
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, partitions, 1) for topic, partitions in TOPICS.items()]).values():
        future.result()
    acknowledged: Read = {p: {} for p in PARTITIONS}

    def delivered(error: Any, message: Any) -> None:
        assert error is None, error
        acknowledged[message.topic(), message.partition()][message.offset()] = message.value()

    producer = Producer({"bootstrap.servers": address, "log_level": 0, "enable.idempotence": True})
    for record in range(RECORDS):
        for topic, number in PARTITIONS:
            value = b"%s-%d-%08d %s" % (topic.encode(), number, record, os.urandom(500).hex().encode())
            time_ms = A_YEAR_AGO_MS + (record - FROM_THEN_ON) * 1_000
            producer.produce(topic, value, None, number, timestamp=time_ms, on_delivery=delivered)
            producer.poll(0)
        if record % 500 == 499:
            producer.flush()
    producer.flush()
    return acknowledged


def consume(address: str, ends: dict[tuple[str, int], int]) -> Read:
    """What a consumer is given from the first offset on, up to these."""
    given: Read = {p: {} for p in PARTITIONS}
    config = {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False, "auto.offset.reset": "error"}
    consumer = Consumer({**config, "log_level": 0})
    consumer.assign([TopicPartition(topic, number, 0) for topic, number in PARTITIONS])
    deadline = time.monotonic() + 120
    while any(len(given[p]) < end for p, end in ends.items()):
        assert time.monotonic() < deadline, {p: len(values) for p, values in given.items()}
        for message in consumer.consume(1_000, 1):
            assert message.error() is None, message.error()
            given[message.topic(), message.partition()][message.offset()] = message.value()
    consumer.close()
    return given


def page(address: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        text: str = answer.read().decode()
        return text


@contextmanager
def agent(machine: Machine, address: str) -> Iterator[None]:
    """The agent until the block ends, then stopped as systemd stops it."""
    process = machine.start("agent", "--config", "tiering.toml", stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 180
        while not is_through(address):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, page(address, "/status")
            time.sleep(0.5)
        yield
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "Traceback" not in said
    finally:
        process.kill()


def is_through(address: str) -> bool:
    """Whether the agent answers, and has archived every inactive segment of every partition."""
    try:
        status = json.loads(page(address, "/status"))
    except urllib.error.URLError:
        return False
    archived = [p for p in status["partitions"] if p["archived_segments"]]
    return len(archived) == len(PARTITIONS) and status["lag_segments"] == 0


def first_screen(places: dict[str, object]) -> list[list[str]]:
    """README's first commands, with these places for those of its reader."""
    text = README.read_text().split("```")[1]
    for place, own in places.items():
        assert place in text
        text = text.replace(place, str(own))
    return [shlex.split(line, comments=True) for line in text.strip().splitlines()]


def try_first_screen(machine: Machine, tmp_path: Path, later: list[bytes]) -> None:
    """Each does what it says; those that come as `later` are of the last year."""
    address = f"127.0.0.1:{real_kafka.free_ports()[0]}"
    data, archive, restored = tmp_path / "broker" / "data", tmp_path / "archive", tmp_path / "restored"
    own = {"/var/lib/kafka/data": data, "s3://bucket/kafka": archive, "127.0.0.1:9095": address, "/srv/restored": restored}
    own["-2h --key customer-17"] = "2000-01-01T00:00Z --partition 0"  # its records have no key
    offload, fetch, serve, kcat, restore = first_screen(own)
    machine.tiering(*offload[1:])
    assert re.search(r"\b500\b.*\borders-0-00000500", machine.tiering(*fetch[1:]))
    endpoint = machine.start(*serve[1:], stderr=subprocess.PIPE)
    try:
        assert endpoint.stderr is not None
        assert endpoint.stderr.readline() == f"tiering: 2 topics at {address}\n"
        if shutil.which("kcat"):
            found = subprocess.run(kcat, stdin=subprocess.DEVNULL, check=True, capture_output=True, timeout=60).stdout
            assert sorted(found.splitlines()) == sorted(later)
    finally:
        endpoint.terminate()
        _, said = endpoint.communicate(timeout=60)
    assert (endpoint.returncode, said) == (0, "tiering: stopped\n")
    machine.tiering(*restore[1:])
    assert sorted(path.name for path in restored.glob("orders-*")) == ["orders-0", "orders-1", "orders-2"]


def inactive(data: Path) -> dict[tuple[str, int], int]:
    """Where the active segment of each partition begins."""
    return {(t, n): max(int(file.stem) for file in (data / f"{t}-{n}").glob("*.log")) for t, n in PARTITIONS}


def test_a_new_user_archives_a_broker_looks_at_it_loses_its_disk_and_reads_everything_back(
    machine: Machine, tmp_path: Path
) -> None:
    broker, data = tmp_path / "broker", tmp_path / "broker" / "data"
    address = f"127.0.0.1:{real_kafka.free_ports()[0]}"
    places = {"data": data, "archive": tmp_path / "archive", "state": tmp_path / "state", "address": address}
    configuration = machine.folder / "tiering.toml"
    configuration.write_text(CONFIGURATION.format(**places))
    assert len(configuration.read_text().splitlines()) == 10
    assert tomllib.loads(configuration.read_text())

    with real_kafka.broker(broker, **BROKER) as bootstrap:
        produced = produce(bootstrap)
        machine.tiering("config", "check", "tiering.toml")
        with agent(machine, address):
            ends = inactive(data)
            assert min(ends.values()) > RECORDS // 2, "several segments are inactive"

            status = json.loads(machine.tiering("status", "--config", "tiering.toml", "--output", "json"))
            assert (status["state"], status["lag_segments"], status["last_error"]) == ("running", 0, None)
            assert {(p["topic"], p["partition"]): p["archived_up_to"] for p in status["partitions"]} == ends
            assert "orders" in machine.tiering("status", "--config", "tiering.toml")

            metrics = page(address, "/metrics")
            shown = re.findall(r"\w+", machine.tiering("metrics", "dashboard"))
            queried = {series.name for series in ALL if not series.name.startswith(OF_OWN_LOGS)} & set(shown) - WHERE_TOLD
            assert len(queried) > 10
            assert {name for name in queried if not re.search(rf"^{name}[ {{]", metrics, re.MULTILINE)} == set()
            assert page(address, "/readyz")
        orders = [(produced["orders", number], ends["orders", number]) for number in range(TOPICS["orders"])]
        later = [value for values, end in orders for offset, value in values.items() if FROM_THEN_ON <= offset < end]
        try_first_screen(machine, tmp_path, later)

    for path in data.iterdir():
        if path.name not in OF_THE_CLUSTER:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not list(data.glob("orders-*"))

    machine.tiering("restore", "--config", "tiering.toml", "--to", data)
    with real_kafka.broker(broker, **BROKER) as bootstrap:
        given = consume(bootstrap, ends)
    for partition, end in ends.items():
        archived = {offset: value for offset, value in produced[partition].items() if offset < end}
        assert len(archived) == end
        assert given[partition] == archived, partition
    assert os.listdir(machine.folder) == ["tiering.toml"], "no command leaves anything where it is run"
