"""Topics that no broker ever had, restored into one: Kafka loads the segments, and consumers are given every row."""

import json
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from written_rows import NOW_MS, Rows, batch, shape

from local_log.formats.record import Codec
from remote import archive
from remote.clock import RandomIds, SystemClock
from remote.store.open import open_store
from tiering.cli import main

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

PARTITIONS = 3
TOPICS = {f"written-{codec.name}": codec for codec in Codec}
PARTITIONS_OF_ALL = [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]


def task(number: int) -> list[Any]:
    """Two batches of rows with and without keys and headers; nothing goes to the last partition."""
    rows = [
        {
            "key": None if i % 5 == 0 else b"key-%d" % (i % 11),
            "value": None if i % 97 == 0 else b"%d-%d " % (number, i) * (i % 13),
            "headers": [{"key": "task", "value": b"%d" % number}, {"key": "none", "value": None}] if i % 3 == 0 else None,
            "partition": i % 2,
            "timestamp": None,
        }
        for i in range(2_000)
    ]
    return [batch(rows[:700]), batch(rows[700:])]


def tiering(*args: object) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, [*map(str, args), "--output", "json"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def consumed(address: str, topic: str, number: int) -> list[Any]:
    """All that a consumer is given: offset, time, key, value and headers."""
    config = {"bootstrap.servers": address, "group.id": "g", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({**config, **real_kafka.AT_ONCE, "log_level": 0, "check.crcs": True})
    consumer.assign([TopicPartition(topic, number, 0)])
    found: list[Any] = []
    while True:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            break
        found.append((message.offset(), message.timestamp()[1], message.key(), message.value(), message.headers()))
    consumer.close()
    return found


def wanted(number: int) -> list[Any]:
    """What a partition should give: the rows of both writes' tasks, in order."""
    records = []
    for each in (0, 1, 0):
        for rows in task(each):
            for row in rows.to_pylist():
                if row["partition"] == number:
                    headers = [(h["key"], h["value"]) for h in row["headers"] or ()] or None
                    records.append((len(records), NOW_MS, row["key"], row["value"], headers))
    return records


def test_a_broker_loads_what_was_written_and_goes_on_from_there(tmp_path: Path) -> None:
    url = tmp_path / "archive"
    store = open_store(str(url))
    archive.create_archive(store, SystemClock(), RandomIds())
    for topic, codec in TOPICS.items():
        of = shape(codec, 4_000, 40_000)
        Rows(store, "one", PARTITIONS, of, topic).run(task(0), task(1))
        Rows(store, "two", None, of, topic).run(task(0))
    assert {row["kind"] for row in tiering("scrub", "--archive", url, "--deep")} == {"fresh_orphan"}  # what was moved
    folder = tmp_path / "broker"
    with real_kafka.broker(folder) as address:
        admin = AdminClient({"bootstrap.servers": address})
        created = admin.create_topics([NewTopic(t, PARTITIONS, 1, config={"retention.ms": "-1"}) for t in TOPICS])
        for future in created.values():
            future.result()
    data = folder / "data"
    ids = {t: (data / f"{t}-0" / "partition.metadata").read_text().split()[-1] for t in TOPICS}
    options = [o for topic, topic_id in ids.items() for o in ("--topic-id", f"{topic}={topic_id}")]
    tiering("restore", "--archive", url, "--to", data, *options)
    with real_kafka.broker(folder) as address:
        for topic, number in PARTITIONS_OF_ALL:
            assert consumed(address, topic, number) == wanted(number), (topic, number)
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        for topic, number in PARTITIONS_OF_ALL:
            producer.produce(topic, b"more", None, number)
        producer.flush()
        for topic, number in PARTITIONS_OF_ALL:
            assert [m[3] for m in consumed(address, topic, number)][len(wanted(number)) :] == [b"more"]
    assert [f.name for f in data.iterdir() if f.name.endswith("-stray")] == []
