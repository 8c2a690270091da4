"""What a broker says of topics, asked by the Kafka client that comes with Spark's own Kafka source: none of ours is needed.

It runs in the driver's Java, with the options of the Kafka source, so whatever is needed to reach the broker is said once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from local_log.errors import NotFound, Unavailable
from spark_jobs.errors import OptionError

_PREFIX = "kafka."
_CONSUMERS_OWN = {"isolation.level", "group.id", "max.poll.records", "fetch.max.bytes", "max.partition.fetch.bytes"}
"""What a client that reads knows and one that asks would warn of."""


@dataclass(frozen=True, slots=True)
class BrokerTopic:
    """A topic's id, and for each partition the first offset and the one after the last."""

    name: str
    topic_id: str
    offsets: Mapping[int, tuple[int, int]]


def describe(spark: SparkSession, kafka_options: Mapping[str, str], topics: Iterable[str]) -> tuple[BrokerTopic, ...]:
    """The topics, in their order.

    Raises OptionError where the session has no Kafka client, NotFound for a topic that the broker does not have, Unavailable.
    """
    from py4j.protocol import Py4JJavaError

    admin_package = _java(spark).org.apache.kafka.clients.admin
    properties = _java(spark).java.util.Properties()
    for name, value in kafka_options.items():
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX) not in _CONSUMERS_OWN:
            properties.setProperty(name.removeprefix(_PREFIX), value)
    try:
        admin = admin_package.Admin.create(properties)
    except TypeError as e:
        raise OptionError(
            "the session does not have Spark's Kafka source; start it with --packages "
            "org.apache.spark:spark-sql-kafka-0-10_2.13 and Spark's version"
        ) from e
    try:
        described = admin.describeTopics(list(topics)).allTopicNames().get()
        return tuple(_topic(spark, admin, described.get(name)) for name in topics)
    except Py4JJavaError as e:
        what = str(e.java_exception.getMessage())
        if "UnknownTopicOrPartition" in what:
            raise NotFound(f"the broker does not have all of the topics {', '.join(topics)}: {what}") from e
        raise Unavailable(f"the broker does not respond: {what}; check its address and the network") from e
    finally:
        admin.close()


def _topic(spark: SparkSession, admin: Any, description: Any) -> BrokerTopic:
    numbers = sorted(partition.partition() for partition in description.partitions())
    spec = _java(spark).org.apache.kafka.clients.admin.OffsetSpec
    firsts = _offsets(spark, admin, description.name(), numbers, spec.earliest())
    ends = _offsets(spark, admin, description.name(), numbers, spec.latest())
    return BrokerTopic(description.name(), description.topicId().toString(), {n: (firsts[n], ends[n]) for n in numbers})


def _offsets(spark: SparkSession, admin: Any, topic: str, numbers: Iterable[int], spec: Any) -> dict[int, int]:
    java = _java(spark)
    partitions = {n: java.org.apache.kafka.common.TopicPartition(topic, n) for n in numbers}
    asked = java.java.util.HashMap()
    for partition in partitions.values():
        asked.put(partition, spec)
    answers = admin.listOffsets(asked).all().get()
    return {n: answers.get(partition).offset() for n, partition in partitions.items()}


def _java(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm
