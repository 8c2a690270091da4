"""Archive and live tail, on a real broker with Spark's own Kafka source: each offset once, whatever lies at the boundary."""

import json
import random  # noqa: TID251  # seeded
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = [
    pytest.mark.spark,
    pytest.mark.oracle,
    pytest.mark.timeout(1500),  # several sessions a test, on a busy machine, too
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

Offsets = dict[str, dict[str, list[int]]]


@dataclass(frozen=True)
class Live:
    """A broker whose topic `orders` (3 partitions) is archived but for its last segments, and all of its partition 2."""

    address: str
    data: Path
    archive: Path


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """While `orders` was archived, one transaction of it was open, one had ended; both went on afterwards."""
    folder = tmp_path_factory.mktemp("live")
    settings = {"log_segment_bytes": "1048576", "replica_high_watermark_checkpoint_interval_ms": "500"}
    with real_kafka.broker(folder, **settings) as address:
        made = Live(address, folder / "data", folder / "archive")
        create(address, orders=3, holes=1, anew=1, fresh=2)
        open_ones = [transactional(address, name) for name in ("to-be-committed", "to-be-aborted")]
        produce(address, "orders", 3000, (0, 1))
        produce(address, "orders", 10, (2,))
        produce(address, "fresh", 10, (0, 1))
        for producer in open_ones:  # these begin in what will be archived, up to the last stable offset
            producer.begin_transaction()
            fill(producer, "orders", 5, (0, 1))
            producer.flush()
        open_ones[0].commit_transaction()
        produce(address, "orders", 3000, (0, 1))
        for topic in ("holes", "anew"):
            produce(address, topic, 4000, (0,))
        offload(made)
        open_ones[0].begin_transaction()
        for producer in open_ones:
            fill(producer, "orders", 7, (0, 1))
            producer.flush()
        open_ones[0].commit_transaction()
        open_ones[1].abort_transaction()
        produce(address, "orders", 500, (0, 1, 2))
        admin = AdminClient({"bootstrap.servers": address})
        for future in admin.delete_records([TopicPartition("holes", 0, 3990)]).values():
            future.result()
        for future in admin.delete_topics(["anew"]).values():
            future.result()
        time.sleep(2)
        create(address, anew=1)
        yield made


def create(address: str, **partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(name, count, 1, config={"retention.ms": "-1"}) for name, count in partitions.items()]
    for future in admin.create_topics(topics).values():
        future.result()


def transactional(address: str, name: str) -> Producer:
    # The broker aborts what stays open longer.
    producer = Producer(
        {"bootstrap.servers": address, "log_level": 0, "transactional.id": name, "transaction.timeout.ms": 900_000}
    )
    producer.init_transactions()
    return producer


def produce(address: str, topic: str, count: int, partitions: tuple[int, ...]) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "linger.ms": 20})
    fill(producer, topic, count, partitions)
    producer.flush()


def fill(producer: Producer, topic: str, count: int, partitions: tuple[int, ...]) -> None:
    r = random.Random(count)
    for i in range(count):
        for partition in partitions:
            producer.produce(topic, r.randbytes(600), b"%d" % i, partition, headers=[("n", b"%d" % i)])
        producer.poll(0)


def offload(live: Live) -> None:
    time.sleep(3)  # the broker writes its high watermarks down, twice a second here
    command = [sys.executable, "-m", "tiering", "offload", "--log-dir", live.data, "--archive", live.archive, "--topic", "[!_]*"]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def consumed(address: str, topic: str, partitions: tuple[int, ...], isolation: str) -> dict[str, list[int]]:
    """The offsets that a consumer gets of each partition."""
    found: dict[str, list[int]] = {}
    for partition in partitions:
        config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": isolation, "enable.partition.eof": True}
        consumer = Consumer({**config, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, partition, 0)])
        offsets = []
        while (message := consumer.poll(20)) is not None and not message.error():
            offsets.append(message.offset())
        assert message is not None
        consumer.close()
        found[str(partition)] = offsets
    return found


def in_spark(live: Live, folder: Path, steps: str, *args: object) -> Any:
    """What `steps` put into `answer`, in a process whose Spark has the Kafka source; `kafka` are its options."""
    jars = ",".join(map(str, real_kafka.jars(real_kafka.SPARK_SOURCE)))
    script = folder / "steps.py"
    script.write_text(PREAMBLE + steps + "\nprint(json.dumps(answer))\n")
    command = [sys.executable, script, jars, live.address, live.archive, *args]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-20000:]
    return json.loads(done.stdout)


PREAMBLE = """
import json, sys
from spark_jobs import live_tail
from spark_jobs.session import session

jars, address, archive, *args = sys.argv[1:]
spark = session("live tail", master="local[2]", conf={"spark.jars": jars})
kafka = {"kafka.bootstrap.servers": address, "includeHeaders": "true"}
answer = {}

def offsets(frame):
    found = {}
    for row in frame.select("topic", "partition", "offset").collect():
        found.setdefault(row["topic"], {}).setdefault(str(row["partition"]), []).append(row["offset"])
    return {topic: {n: sorted(o) for n, o in numbers.items()} for topic, numbers in found.items()}

def refusal(ask):
    try:
        ask()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
"""


def test_a_batch_has_each_offset_once_and_a_boundary_without_a_hole(live: Live, tmp_path: Path) -> None:
    steps = """
for isolation in ("read_uncommitted", "read_committed"):
    options = {**kafka, "kafka.isolation.level": isolation}
    frame = live_tail.read(spark, archive, ["orders", "fresh"], options)
    answer[isolation] = offsets(frame)
    answer["columns"] = frame.columns
answer["boundary"] = json.loads(live_tail.boundary_of(spark, archive, ["orders", "fresh"], kafka).starting_offsets())
answer["from the archive alone"] = json.loads(live_tail.starting_offsets(archive, ["orders"]))
whole = spark.read.format("kafka").options(**kafka, subscribe="orders,fresh").load()
joined = live_tail.read(spark, archive, ["orders", "fresh"], kafka)
answer["others"] = [joined.exceptAll(whole).count(), whole.exceptAll(joined).count()]
answer["hole"] = refusal(lambda: live_tail.read(spark, archive, ["holes"], kafka))
answer["over the hole"] = offsets(live_tail.read(spark, archive, ["holes"], {**kafka, "failOnDataLoss": "false"}))
answer["anew"] = refusal(lambda: live_tail.read(spark, archive, ["anew"], kafka))
answer["nowhere"] = refusal(lambda: live_tail.read(spark, archive, ["nowhere"], kafka))
answer["set here"] = refusal(lambda: live_tail.read(spark, archive, ["orders"], {**kafka, "startingOffsets": "latest"}))
"""
    answer = in_spark(live, tmp_path, steps)
    for isolation in ("read_uncommitted", "read_committed"):
        assert answer[isolation]["orders"] == consumed(live.address, "orders", (0, 1, 2), isolation)
        assert answer[isolation]["fresh"] == consumed(live.address, "fresh", (0, 1), isolation)
    assert answer["read_committed"] != answer["read_uncommitted"]
    assert answer["others"] == [0, 0]
    boundary = answer["boundary"]["orders"]
    assert boundary["2"] == -2  # never archived
    assert answer["boundary"]["fresh"] == {"0": -2, "1": -2}
    assert 0 < boundary["0"] < answer["read_uncommitted"]["orders"]["0"][-1]
    assert answer["from the archive alone"]["orders"] == {n: boundary[n] for n in ("0", "1")}
    archived = answer["over the hole"]["holes"]["0"]
    assert archived[-1] == 3999
    low = max(o for o in archived if o < 3990)
    assert archived == [*range(low + 1), *range(3990, 4000)]
    assert answer["hole"].startswith(
        f"MissingRange: holes-0: the archive lacks offsets [{low + 1}, 3990): the broker has deleted"
    )
    assert "deleted and made anew" in answer["anew"]
    assert answer["nowhere"].startswith("NotFound: the broker does not have all of the topics nowhere")
    assert answer["set here"].startswith("OptionError: option startingOffsets cannot be given")
    assert "headers" in answer["columns"]


def test_a_stream_has_each_offset_once_also_when_it_starts_again_and_the_archive_has_grown(live: Live, tmp_path: Path) -> None:
    steps = """
folder, = args
def run():
    frame = live_tail.read_stream(spark, archive, ["orders"], kafka, boundary=f"{folder}/boundary")
    writer = frame.writeStream.format("parquet").option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/c")
    writer.trigger(availableNow=True).start().awaitTermination()
    return offsets(spark.read.parquet(f"{folder}/out"))
answer["found"] = run()
answer["other topics"] = refusal(
    lambda: live_tail.read_stream(spark, archive, ["fresh"], kafka, boundary=f"{folder}/boundary"))
"""
    found = in_spark(live, tmp_path, steps, tmp_path)["found"]["orders"]
    assert found == consumed(live.address, "orders", (0, 1, 2), "read_uncommitted")
    produce(live.address, "orders", 4000, (0, 1, 2))
    offload(live)
    answer = in_spark(live, tmp_path, steps, tmp_path)
    again = answer["found"]["orders"]
    assert again == consumed(live.address, "orders", (0, 1, 2), "read_uncommitted")
    assert len(again["2"]) == len(found["2"]) + 4000
    assert "the boundary that was kept is one of the topics orders" in answer["other topics"]


def test_the_checkpoint_of_a_stream_over_the_archive_is_where_sparks_kafka_source_goes_on(live: Live, tmp_path: Path) -> None:
    steps = """
folder, = args
frame = spark.readStream.format("tiering").options(archive=archive, subscribe="orders", startingOffsets="earliest").load()
writer = frame.writeStream.format("parquet").option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/c")
query = writer.trigger(availableNow=True).start()
query.awaitTermination()
reached = json.loads(query.lastProgress.sources[0].endOffset)
answer["reached"] = reached
reached["orders"].setdefault("2", -2)  # unless another test has archived it
live = spark.read.format("kafka").options(**kafka, subscribe="orders", startingOffsets=json.dumps(reached)).load()
answer["found"] = offsets(spark.read.parquet(f"{folder}/out").select("topic", "partition", "offset").union(
    live.select("topic", "partition", "offset")))
"""
    answer = in_spark(live, tmp_path, steps, tmp_path)
    assert [topic for topic in answer["reached"] if topic.startswith("orders@")]
    assert answer["found"]["orders"] == consumed(live.address, "orders", (0, 1, 2), "read_uncommitted")
