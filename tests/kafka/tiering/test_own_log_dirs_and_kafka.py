"""A broker's log directory, taken over by us, lived in for a while, and given back: the broker starts cleanly on it."""

import json
from pathlib import Path

import pytest
import real_kafka
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from hand_made import batch, record

from local_log.engine.manager.config import ManagerConfig
from local_log.formats.filenames import TopicPartition
from tiering.cli import main
from tiering.local_tier.opening import local_tier
from tiering.local_tier.topics_file import read_topics

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

SETTINGS = {"segment.bytes": "1048576", "retention.ms": "-1", "remote.storage.enable": "true"}
EVENTS = TopicPartition("events", 0)
OURS = 50


def test_a_directory_taken_over_and_given_back_has_all_records_of_both(tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    with real_kafka.broker(tmp_path) as address:
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics(
            [NewTopic("events", 1, 1, config={"segment.bytes": "1048576", "retention.ms": "-1", "compression.type": "producer"})]
        )["events"].result()
        producer = Producer({"bootstrap.servers": address, "log_level": 0})
        for number in range(3_000):
            producer.produce("events", b"%d " % number + bytes(1_000), None, 0)
        producer.flush()
    properties = (data / "meta.properties").read_bytes()
    ran = CliRunner().invoke(
        main, ["offload", "--own-log-dir", str(data), "--archive", str(archive), "--topic", "events", "--output", "jsonl"]
    )
    assert (ran.exit_code, [json.loads(line)["action"] for line in ran.stdout.splitlines()]) == (0, ["copied", "copied", "keep"])
    ids = _lives_on(data)
    assert (data / "meta.properties").read_bytes() == properties
    assert (data / "tiering-topics.json").exists()
    with real_kafka.broker(tmp_path) as address:
        assert _consumed(address) == [*range(3_000), *range(10_000, 10_000 + OURS)]
    said = (tmp_path / "broker.out").read_text()
    assert "tiering-topics" not in said
    assert "ERROR" not in said
    assert not list(data.glob("*-stray"))
    topics = read_topics((data / "tiering-topics.json").read_bytes()).topics
    assert topics["events"].config == {"segment.bytes": "1048576", "compression.type": "producer"}
    after = _lives_on(data)
    assert (after["events"], set(after)) == (ids["events"], {"events", "__consumer_offsets"}), "the broker has made one more"


def _lives_on(data: Path) -> dict[str, str | None]:
    """Appends some records as the directory's owner, rolls and ticks; gives the ids of the topics."""
    tier = local_tier(ManagerConfig(log_dirs=(str(data),), initial_task_delay_ms=0), lambda topic: SETTINGS)
    started = tier.start()
    assert (started.unopened, started.damaged, tier.was_clean) == ((), (), True)
    log = tier.log(EVENTS)
    epoch = log.epochs.entries[-1].epoch
    for number in range(OURS):
        log.append_as_leader(batch(record(value=b"%d" % (10_000 + number))), epoch)
    log.roll()
    assert tier.tick() == ()
    ids = {name: topic.topic_id for name, topic in tier.topics().items()}
    assert tier.stop() == ()
    return ids


def _consumed(address: str) -> list[int]:
    config = {"bootstrap.servers": address, "group.id": "g", "enable.partition.eof": True, "check.crcs": True, "log_level": 0}
    consumer = Consumer({**config, **real_kafka.AT_ONCE, "enable.auto.commit": False})
    consumer.assign([Place("events", 0, 0)])
    found: list[int] = []
    while (message := consumer.poll(20)) is not None and not message.error():
        found.append(int((message.value() or b"").split()[0]))
    consumer.close()
    return found
