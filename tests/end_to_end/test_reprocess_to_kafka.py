"""The job reprocess to a real broker: archived records through a query, sent by Spark's Kafka sink."""

import json
from pathlib import Path
from typing import Any

import logs_to_archive
import pytest
import real_kafka
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from golden_logs import broker_logs, live
from pyspark.sql import SparkSession

from remote.store.folder.store import FolderStore
from spark_jobs.jobs import reprocess

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.spark,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

SOURCE = "g-codec-lz4"


def test_rows_of_a_query_arrive_at_a_broker_in_their_partitions_with_key_value_and_headers(
    spark_and_kafka: SparkSession, tmp_path: Path
) -> None:
    logs = broker_logs(tmp_path / "logs", f"{SOURCE}-0")
    logs_to_archive.roll(logs, f"{SOURCE}-0")
    logs_to_archive.offload_all(logs, FolderStore(str(tmp_path / "archive")))
    with real_kafka.broker(tmp_path / "broker") as address:
        admin = AdminClient({"bootstrap.servers": address})
        for future in admin.create_topics([NewTopic("again", 2, 1)]).values():
            future.result()
        report = asked(
            "--archive", tmp_path / "archive", "--topic", SOURCE, "--to-kafka", address, "--to-topic", "again",
            "--sql", "SELECT key, value, headers, CAST(offset % 2 AS INT) AS partition FROM records WHERE offset >= 1000",
        )  # fmt: skip
        sent = [messages(address, "again", partition) for partition in (0, 1)]
    end = live(f"{SOURCE}-0")["latest"][0]
    assert report["offsets"] == {SOURCE: {"0": [live(f"{SOURCE}-0")["earliest"][0], end]}}
    assert sum(map(len, sent)) == end - 1000
    assert report["delivery"].startswith("at least once")
    records = {r["offset"]: r for r in archived(tmp_path / "archive")}
    for partition in (0, 1):
        assert sent[partition] == [records[o] | {"offset": None} for o in range(1000, end) if o % 2 == partition]


def asked(*args: object) -> dict[str, Any]:
    done = CliRunner().invoke(reprocess.main, [*map(str, args)], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def messages(address: str, topic: str, partition: int) -> list[dict[str, Any]]:
    """All messages of a partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0})
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1]
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[Any] = []
        while len(found) < end:
            found += consumer.consume(end - len(found), timeout=10)  # it waits for as many as it is asked for
    finally:
        consumer.close()
    return [{"offset": None, "key": m.key(), "value": m.value(), "headers": m.headers() or []} for m in found]


def archived(archive: Path) -> list[dict[str, Any]]:
    """The archived records, as a consumer would give them."""
    from remote import archive as archives
    from remote.read.log import ArchivedLog

    store = FolderStore(str(archive))
    [manifest] = archives.manifests(store, SOURCE)
    log = ArchivedLog(store, manifest)
    return [
        {
            "offset": row["offset"],
            "key": row["key"],
            "value": row["value"],
            "headers": [(h["key"].decode(), h["value"]) for h in row["headers"]],
        }
        for batch in log.records(log.log_start_offset, log.end_offset)
        for row in batch.to_pylist()
    ]
