"""The same topics, settings and records to a broker and to log directories of ours: answers and logs are the same."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any

from compared_answers import Difference, differences
from compared_brokers import Side
from hand_made import CONTROL, TRANSACTIONAL, batch, message, record, wrapper
from writing_endpoint import WritingEndpoint

from local_log.engine.memory_records import memory_batches
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.record import Codec
from tiering.endpoint.apis.configs import ResourceType
from tiering.endpoint.apis.topic_configs import DYNAMIC_TOPIC
from tiering.endpoint.protocol.api_keys import (
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    FETCH,
    INCREMENTAL_ALTER_CONFIGS,
    METADATA,
    PRODUCE,
    Api,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tiering.endpoint.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tiering.endpoint.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from tiering.endpoint.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tiering.endpoint.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tiering.endpoint.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

IDS_SINCE = {PRODUCE.key: 13, DELETE_TOPICS.key: 6}
_WORDS = ("error_message", "batch_index_error_message", "[order]")
NO_TOPIC = "B" * 21 + "A"
"""An id that no topic has."""


@dataclass
class ComparedWrites:
    """A broker and an endpoint that are asked the same, one request after the other; `found` is what differs in the answers."""

    broker: Side
    endpoint: WritingEndpoint
    found: list[tuple[str, int, object, Difference]] = field(default_factory=list)
    ids: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    """The topic's ids by name: the broker's, and ours."""
    codes: set[int] = field(default_factory=set)
    """All error codes that the broker has answered with."""

    def ask(self, api: Api, version: int, request: Any, ours: Any = None) -> Any:
        """The broker's answer. In the request names stand for the ids of topics; `ours` is what we are asked instead."""
        asked = [_with_ids(one, ids) for one, ids in zip((request, ours or request), self.ids, strict=True)]
        theirs = self.broker.ask(api, version, asked[0])
        answers = theirs, self.endpoint.ask(api, version, asked[1])
        named = [_with_names(answer, ids) for answer, ids in zip(answers, self.ids, strict=True)]
        self.found += [(api.name, version, request, one) for one in differences(*named) if not _is_known(one)]
        self.codes |= set(_codes(theirs))
        return theirs

    def create(self, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> None:
        """Creates topics on both sides, and waits until the broker leads them."""
        self.ask(CREATE_TOPICS, version, CreateTopicsRequest(topics, 30_000, validate_only))
        for name in {one.name for one in topics} & {*self.endpoint.tier.topics()}:
            self._learn(name)

    def _learn(self, name: str) -> None:
        known, asked = self.endpoint.tier.topics()[name], MetadataRequest((MetadataRequestTopic(name=name),))
        while True:  # the broker learns of what its controller has made
            [topic] = self.broker.ask(METADATA, 12, asked).topics
            if len(topic.partitions) == len(known.partitions) and not any(one.error_code for one in topic.partitions):
                break
        for ids, topic_id in zip(self.ids, (topic.topic_id, known.topic_id or ""), strict=True):
            ids[name] = topic_id

    def grow(self, name: str, count: int, version: int = 3) -> None:
        """More partitions."""
        self.ask(CREATE_PARTITIONS, version, CreatePartitionsRequest((CreatePartitionsTopic(name, count, None),), 30_000))
        if name in self.endpoint.tier.topics():
            self._learn(name)

    def delete(self, name: str, version: int = 6) -> None:
        """Deletes a topic, by its id where the version has ids and it is known."""
        by_id = version >= IDS_SINCE[DELETE_TOPICS.key] and name in self.ids[0]
        state = DeleteTopicState(None, name) if by_id else DeleteTopicState(name)
        names = () if version >= IDS_SINCE[DELETE_TOPICS.key] else (name,)
        self.ask(DELETE_TOPICS, version, DeleteTopicsRequest((state,), names, 30_000))

    def alter(self, name: str, *settings: tuple[str, int, str | None], version: int = 1, kind: int = ResourceType.TOPIC) -> None:
        """Changes settings of a topic; a broker takes its time to apply them, so they are for what is not appended to."""
        resource = AlterConfigsResource(kind, name, tuple(AlterableConfig(*one) for one in settings))
        self.ask(INCREMENTAL_ALTER_CONFIGS, version, IncrementalAlterConfigsRequest((resource,)))

    def trim(self, name: str, number: int, offset: int, version: int = 2) -> None:
        """Deletes records."""
        asked = DeleteRecordsRequest((DeleteRecordsTopic(name, (DeleteRecordsPartition(number, offset),)),), 30_000)
        self.ask(DELETE_RECORDS, version, asked)

    def produce(self, name: str, number: int, records: bytes, version: int, acks: int = -1) -> None:
        """Appends to a partition."""
        data = (PartitionProduceData(number, (records,) if records else ()),)
        has_ids = version >= IDS_SINCE[PRODUCE.key]
        topic = TopicProduceData("" if has_ids else name, name if has_ids else ZERO_TOPIC_ID, data)
        self.ask(PRODUCE, version, ProduceRequest(None, acks, 30_000, (topic,)))

    def logs(self, name: str, number: int) -> tuple[bytes, bytes]:
        """All whole batches of a partition: the broker's, and ours."""
        log = self.endpoint.log(name, number)
        partition = FetchPartition(number, fetch_offset=log.log_start_offset, partition_max_bytes=1 << 30)
        asked = FetchRequest(topics=(FetchTopic(name, partitions=(partition,)),), max_bytes=1 << 30)
        found = self.broker.ask(FETCH, 12, asked).responses[0].partitions[0]
        assert (found.error_code, found.log_start_offset) == (0, log.log_start_offset)
        return _whole(b"".join(found.records)), _whole(log.read(log.log_start_offset, 1 << 30).records)


def _whole(records: bytes) -> bytes:
    return records[: sum(one.size for one in memory_batches(records))]


def _codes(answer: Any) -> Iterator[int]:
    if isinstance(answer, tuple):
        for one in answer:
            yield from _codes(one)
    elif is_dataclass(answer):
        for one in fields(answer):
            value = getattr(answer, one.name)
            yield from [value] if one.name == "error_code" else _codes(value)


def _with_ids(request: Any, ids: dict[str, str]) -> Any:
    return _mapped(request, lambda name: name if name == ZERO_TOPIC_ID else ids.get(name, NO_TOPIC))


def _with_names(answer: Any, ids: dict[str, str]) -> Any:
    names = {topic_id: name for name, topic_id in ids.items()}
    return _mapped(answer, lambda topic_id: names.get(topic_id, topic_id if topic_id == NO_TOPIC else ZERO_TOPIC_ID))


def _mapped(value: Any, of_id: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_mapped(one, of_id) for one in value)
    if not is_dataclass(value):
        return value
    changed = {one.name: getattr(value, one.name) for one in fields(value)}
    return replace(value, **{n: of_id(v) if n == "topic_id" else _mapped(v, of_id) for n, v in changed.items()})  # type: ignore[type-var]


def _is_known(found: Difference) -> bool:
    if found.path.endswith(_WORDS) or (found.path.endswith("error_code") and found.theirs == ErrorCode.UNKNOWN_SERVER_ERROR):
        return True
    if found.path == "topics.configs[]":  # a broker has settings of replicas, too
        return found.ours is None
    is_of_config = found.path.startswith("topics.configs.")
    return is_of_config and all(one.config_source != DYNAMIC_TOPIC for one in found.within[-1])


class AnyRecords:
    """Batches as producers send them, and such as none should."""

    def __init__(self, random: Random, now_ms: int) -> None:
        self.random, self.now_ms = random, now_ms
        self.sequences: dict[int, tuple[int, int]] = {}

    def sound(self, **more: Any) -> bytes:
        """A batch that a log takes."""
        count, keys = self.random.randint(1, 4), (b"k", b"", b"key of some bytes")
        made = [
            record(delta, key=self.random.choice(keys), value=self.random.randbytes(self.random.randrange(40)))
            for delta in range(count)
        ]
        time = self.now_ms - self.random.randrange(1000)
        given = {"base_timestamp": time, "max_timestamp": time, "attributes": int(self.random.choice([*Codec]))}
        return batch(*made, **given | more)

    def idempotent(self) -> bytes:
        """A batch of one of a few producers: the next one, or one that is late, early, or of another epoch."""
        producer = self.random.randrange(3)
        epoch, sequence = self.sequences.get(producer, (1, 0))
        kind = self.random.choice(("next", "next", "next", "again", "early", "newer", "older"))
        if kind == "newer":
            epoch, sequence = epoch + 1, 0
        sent = {"again": max(0, sequence - 1), "early": sequence + 3}.get(kind, sequence)
        of = epoch - 1 if kind == "older" else epoch
        time = {"base_timestamp": self.now_ms, "max_timestamp": self.now_ms}
        made = batch(record(value=b"v"), producer_id=producer, producer_epoch=of, base_sequence=sent, **time)
        if kind in ("next", "newer"):
            self.sequences[producer] = epoch, sequence + 1
        return made

    def old(self) -> bytes:
        """Messages of magic 0 or 1, compressed together or not, some of them damaged, too late or without a key."""
        magic, codec = self.random.randrange(2), self.random.choice((Codec.none, Codec.none, Codec.gzip, Codec.snappy, Codec.lz4))
        late = 100_000_000 if self.random.random() < 0.1 else 0
        key = None if self.random.random() < 0.2 else b"k"
        made = [
            message(magic, b"%d" % number, offset=number, key=key, timestamp=self.now_ms + late)
            for number in range(self.random.randint(1, 4))
        ]
        if codec is not Codec.none:
            made = [wrapper(magic, codec, *made, offset=len(made) - 1, timestamp=self.now_ms + late)]
        if self.random.random() < 0.1:
            made[0] = made[0][:-1] + bytes((made[0][-1] ^ 1,))
        return b"".join(made)

    def odd(self) -> bytes:
        """Something that is refused, mostly."""
        one, time = self.sound(attributes=0), self.now_ms
        place = self.random.randrange(17, len(one))
        return self.random.choice(
            (
                b"",
                one[: self.random.randrange(len(one))],
                one + one,
                one[:place] + bytes((one[place] ^ 1,)) + one[place + 1 :],
                one[:16] + b"\x03" + one[17:],
                self.sound(base_offset=5),
                self.sound(count=7),
                self.sound(count=0, last_delta=-1),
                self.sound(attributes=CONTROL),
                self.sound(attributes=TRANSACTIONAL),
                self.sound(producer_id=9, producer_epoch=0, base_sequence=-1),
                self.sound(max_timestamp=time + 100_000_000, base_timestamp=time + 100_000_000),
                batch(record(key=None), base_timestamp=time, max_timestamp=time),
                batch(record(value=bytes(3000)), base_timestamp=time, max_timestamp=time),
                message(1, timestamp=time),
                message(0) + one,
                batch(record(3), base_timestamp=time, max_timestamp=time),
                batch(section=b"\x05nonsense", count=1, attributes=self.random.choice((0, 1, 3, 4))),
            )
        )


def configs(**settings: str) -> tuple[CreatableTopicConfig, ...]:
    """Settings with underscores for their dots."""
    return tuple(CreatableTopicConfig(name.replace("_", "."), text) for name, text in settings.items())


def make_topics(both: ComparedWrites) -> list[tuple[str, int]]:
    """Topics of several settings, and requests for such as there cannot be; gives partitions to append to, also missing ones."""
    hour = {"message_timestamp_after_max_ms": "3600000"}
    plain = CreatableTopic("w-plain", 1, 1, configs=configs(**hour))
    for version in range(CREATE_TOPICS.first, CREATE_TOPICS.last + 1):
        both.create(CreatableTopic("w-plain", 0, 1), CreatableTopic("a b", 1, 1), CreatableTopic("w-many", 1, 2), version=version)
        both.create(plain, version=version, validate_only=True)
    both.create(plain)
    both.create(plain, CreatableTopic("w-compacted", -1, -1, configs=configs(cleanup_policy="compact", **hour)))
    both.create(CreatableTopic("w-small", 2, 1, configs=configs(max_message_bytes="2000", min_insync_replicas="1", **hour)))
    both.create(CreatableTopic("w-wrong", 1, 1, configs=configs(retention_ms="soon")), CreatableTopic("w_plain", 1, 1))
    both.create(CreatableTopic("w-wrong", 1, 1, configs=configs(no_such="1")), CreatableTopic("w-two", 1, 0))
    both.create(plain, plain)
    for version in range(CREATE_PARTITIONS.last + 1):
        both.grow("w-plain", version, version)
        both.grow("w-nowhere", 3, version)
    both.grow("w-plain", 2)
    for name in ("w-small", "w-nowhere", ""):
        both.alter(name, ("retention.ms", 0, "5"), ("cleanup.policy", 2, "compact"), ("no.such", 1, None))
        both.alter(name, ("retention.ms", 0, "x"), version=0)
        both.alter(name, ("retention.ms", 2, "5"))
        both.alter(name, ("retention.ms", 9, "5"))
        both.alter(name, ("retention.ms", 0, None))
        both.alter(name, ("cleanup.policy", 3, "compact"), ("retention.ms", 1, None))
    numbers = {"w-plain": 2, "w-compacted": 1, "w-small": 2, "w-nowhere": 1}
    return [(name, number) for name, count in numbers.items() for number in range(count + (name == "w-small"))]


def alter_groups(both: ComparedWrites) -> None:
    """Settings of groups: such as there are, and others."""
    session, interval, assignment = (
        f"consumer.{one}.ms" for one in ("session.timeout", "heartbeat.interval", "assignment.interval")
    )
    for group in ("w-group", ""):
        for text in ("50000", "45000", "44999", "60000", "60001", "soon", "", "-1", None):
            both.alter(group, (session, 0, text), kind=ResourceType.GROUP)
        for text in ("5000", "4999", "15000", "15001"):
            both.alter(group, (interval, 0, text), kind=ResourceType.GROUP)
        for text in ("0", "-1", "15000", "15001"):
            both.alter(group, (assignment, 0, text), kind=ResourceType.GROUP)
        for operation, text in ((1, None), (2, "50000"), (3, "50000"), (9, "50000")):
            both.alter(group, (session, operation, text), ("no.such", 1, None), kind=ResourceType.GROUP)
        both.alter(group, ("no.such", 0, "1"), kind=ResourceType.GROUP)


def reassign(both: ComparedWrites, data: Path) -> None:
    """Other replicas and directories for partitions, such as there are and others; the broker's directory is `data`."""
    replicas = ((1,), None, (), (2,), (1, 1), (1, 2), (-1,))
    for version, allows in ((0, True), (1, True), (1, False)):
        asked = tuple(
            ReassignableTopic(name, tuple(ReassignablePartition(number, one) for one in replicas for number in (0, 9)))
            for name in ("w-plain", "w-nowhere", "")
        )
        both.ask(ALTER_PARTITION_REASSIGNMENTS, version, AlterPartitionReassignmentsRequest(30_000, allows, asked))
    own = both.endpoint.log("w-plain").folder.path.rpartition("/")[0]
    for version in (1, 2):
        for paths in ((str(data), own), ("/nowhere", "/nowhere"), ("", "")):
            names = ("w-plain", "w-nowhere", "", "x" * 213, "x" * 214)
            topics = tuple(AlterReplicaLogDirTopic(name, (0, 9, 0)) for name in names)
            asked_both = [AlterReplicaLogDirsRequest((AlterReplicaLogDir(path, topics),)) for path in paths]
            both.ask(ALTER_REPLICA_LOG_DIRS, version, *asked_both)


def remove_topics(both: ComparedWrites) -> None:
    """Deletes them again, by name and by id, and what is not there."""
    for version in range(DELETE_TOPICS.first, DELETE_TOPICS.last + 1):
        both.delete("w-nowhere", version)
    for version, name in ((1, "w-plain"), (5, "w-compacted"), (6, "w-small")):
        both.delete(name, version)
