"""A real broker on a restored directory: it serves a consumer every record that was archived, and goes on from there."""

import json
import random  # noqa: TID251  # seeded
import shutil
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tiering.cli import main
from tiering.restore.target import UNFINISHED

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

TOPICS = ("plain", "payments")
PARTITIONS = [(topic, number) for topic in TOPICS for number in range(2)]
T0 = 1_700_000_000_000
SETTINGS = {"retention.ms": "-1", "segment.bytes": "1048576"}
ISOLATIONS = ("read_uncommitted", "read_committed")

Message = tuple[int, int, bytes | None]
"""Offset, timestamp and value."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[Any, list[Message]]]:
    """A stopped broker's folder, the archive of its logs, and what consumers were given while it ran."""
    folder = tmp_path_factory.mktemp("before")
    archive = tmp_path_factory.mktemp("archive")
    with real_kafka.broker(folder) as address:
        create(address)
        plain(address)
        transactions(address)
        given = {(*p, isolation): consumed(address, *p, isolation) for p in PARTITIONS for isolation in ISOLATIONS}
    tiering("offload", "--log-dir", folder / "data", "--archive", archive, "--topic", "[!_]*")
    return folder, archive, given


def create(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(name, 2, 1, config=SETTINGS) for name in TOPICS]).values():
        future.result()


def plain(address: str) -> None:
    """Half of it by an idempotent producer."""
    for idempotent in (False, True):
        config = {"bootstrap.servers": address, "log_level": 0, "enable.idempotence": idempotent, "batch.num.messages": 200}
        producer = Producer(config)
        r = random.Random(int(idempotent))
        for i in range(12_000):
            producer.produce("plain", r.randbytes(r.randrange(400)), None, i % 2, timestamp=T0 + i)
            producer.poll(0)
        producer.flush()


def transactions(address: str) -> None:
    """Long ones beside short ones, so that every segment's end lies in the middle of some; the last ones are decided."""
    config = {"bootstrap.servers": address, "log_level": 0, "transaction.timeout.ms": 900_000}
    producers = [Producer({**config, "transactional.id": f"t{i}"}) for i in range(3)]
    r = random.Random(3)
    for producer in producers:
        producer.init_transactions()
        producer.begin_transaction()
    for round_ in range(90):
        for i in range(100):
            producers[i % 3].produce("payments", r.randbytes(600), None, i % 2)
        for number, producer in enumerate(producers):
            producer.flush()
            if round_ % (number * 7 + 1) == 0 or round_ == 89:
                producer.abort_transaction() if r.randrange(2) else producer.commit_transaction()
                if round_ < 89:
                    producer.begin_transaction()


def consumed(address: str, topic: str, partition: int, isolation: str) -> list[Message]:
    config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({**config, **real_kafka.AT_ONCE, "enable.auto.commit": False, "log_level": 0, "check.crcs": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[Message] = []
    while True:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            break
        found.append((message.offset(), message.timestamp()[1], message.value()))
    consumer.close()
    return found


def tiering(*args: object) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, [*map(str, args), "--output", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def wiped(before: Path, into: Path) -> Path:
    """A copy of a broker's folder whose logs are gone: it knows its cluster and its topics, and nothing else."""
    shutil.copytree(before, into)
    data = into / "data"
    for topic, number in PARTITIONS:
        shutil.rmtree(data / f"{topic}-{number}")
    return data


def ends(rows: list[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """Where each archived log ends, by what was restored whole."""
    return {(r["topic"], r["partition"]): r["end_offset"] for r in rows if r["action"] in ("whole", "cut")}


def test_a_consumer_of_a_broker_whose_disk_was_wiped_is_given_every_archived_record(before: Any, tmp_path: Path) -> None:
    folder, archive, given = before
    data = wiped(folder, tmp_path / "after")
    archived = ends(tiering("restore", "--archive", archive, "--to", data))
    assert archived.keys() == set(PARTITIONS)
    assert not (data / ".kafka_cleanshutdown").exists()
    with real_kafka.broker(tmp_path / "after") as address:
        for (topic, number, isolation), messages in given.items():
            wanted = [m for m in messages if m[0] < archived[topic, number]]
            assert wanted
            assert consumed(address, topic, number, isolation) == wanted, (topic, number, isolation)
        plain(address)
        transactions(address)
        for topic, number in PARTITIONS:
            for isolation in ISOLATIONS:
                again = consumed(address, topic, number, isolation)
                wanted = [m for m in given[topic, number, isolation] if m[0] < archived[topic, number]]
                assert again[: len(wanted)] == wanted
                assert len(again) > len(wanted) + 1000
    assert [f.name for f in data.iterdir() if f.name.endswith("-stray")] == []


def test_another_cluster_takes_the_logs_under_its_own_topic_ids(before: Any, tmp_path: Path) -> None:
    _, archive, given = before
    with real_kafka.broker(tmp_path) as address:
        create(address)
    data = tmp_path / "data"
    ids = {t: (data / f"{t}-0" / "partition.metadata").read_text().split()[-1] for t in TOPICS}
    refused = CliRunner().invoke(main, ["restore", "--archive", str(archive), "--to", str(data)])
    assert refused.exit_code == 1
    assert f"--topic-id plain={ids['plain']}" in refused.stderr
    options = [o for topic, topic_id in ids.items() for o in ("--topic-id", f"{topic}={topic_id}")]
    archived = ends(tiering("restore", "--archive", archive, "--to", data, *options))
    with real_kafka.broker(tmp_path) as address:
        for (topic, number, isolation), messages in given.items():
            wanted = [m for m in messages if m[0] < archived[topic, number]]
            assert consumed(address, topic, number, isolation) == wanted, (topic, number, isolation)
        plain(address)
        assert len(consumed(address, "plain", 0, "read_committed")) > archived["plain", 0]


@pytest.mark.parametrize("limit", ["offset", "timestamp"])
def test_a_broker_starts_on_a_log_that_was_cut_at_an_offset_or_a_time(before: Any, tmp_path: Path, limit: str) -> None:
    folder, archive, given = before
    data = wiped(folder, tmp_path / "after")
    messages = {p: given[(*p, "read_uncommitted")] for p in PARTITIONS}
    until_ms = messages["payments", 0][1_500][1]
    option = ("--until-offset", 1_500) if limit == "offset" else ("--until-timestamp", until_ms)
    rows = tiering("restore", "--archive", archive, "--to", data, *option)
    archived = ends(rows)
    cut = {(r["topic"], r["partition"]) for r in rows if r["action"] == "cut"}
    assert cut >= {("payments", 0), ("payments", 1)}
    for p in cut:
        stop = 1_500 if limit == "offset" else next(m[0] for m in messages[p] if m[1] >= until_ms)
        assert stop - 400 < archived[p] <= stop  # no batch has more records
    with real_kafka.broker(tmp_path / "after") as address:
        for p in PARTITIONS:
            wanted = [m for m in messages[p] if m[0] < archived[p]]
            assert consumed(address, *p, "read_uncommitted") == wanted
            committed = consumed(address, *p, "read_committed")
            assert committed == [m for m in given[(*p, "read_committed")] if m[0] < archived[p]][: len(committed)]
        plain(address)
        assert len(consumed(address, "plain", 1, "read_committed")) > archived["plain", 1]


def test_no_broker_starts_on_a_restore_that_has_not_finished(before: Any, tmp_path: Path) -> None:
    folder, archive, _ = before
    data = wiped(folder, tmp_path / "after")
    tiering("restore", "--archive", archive, "--to", data, "--topic", "plain")
    (data / UNFINISHED / "payments-0").mkdir(parents=True)
    with pytest.raises(RuntimeError, match="the broker ended"), real_kafka.broker(tmp_path / "after"):
        pytest.fail("the broker runs on half of a restore")
    shutil.rmtree(data / UNFINISHED)
    with real_kafka.broker(tmp_path / "after") as address:
        assert consumed(address, "plain", 0, "read_committed")
