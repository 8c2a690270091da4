"""Archive and live tail: everything that was archived, and from there on what the broker has, each offset once.

    from spark_jobs import live_tail

    kafka = {"kafka.bootstrap.servers": "broker:9092"}
    frame = live_tail.read(spark, "s3://bucket/archive", ["orders"], kafka)
    frame = live_tail.read_stream(spark, "s3://bucket/archive", ["orders"], kafka, boundary="s3://bucket/checkpoints/q-boundary")

Both sides meet at a boundary: where the archive ends, partition by partition. Below it every transaction is decided, and what it
came to is in the archive, so each isolation level sees on both sides what it would see of one log, also where a transaction began
before the boundary and ended after it. A partition that was never archived is the broker's from its first offset.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession

from local_log.errors import AlreadyExists, Conflict, Corrupt, NotFound, OffsetOutOfRange
from remote import archive as archives
from remote.manifest.losses import reason_with
from remote.manifest.model import Manifest
from remote.read.plan import MissingRange
from remote.signed_store import trusted
from remote.store.api import ObjectStore
from remote.store.open import open_store
from spark_jobs.broker import BrokerTopic, describe
from spark_jobs.errors import OptionError
from spark_jobs.source.limits import EARLIEST_OFFSET, read_by_partition

BOUNDARY_KEY = "boundary.json"

_BOTH = ("includeheaders", "kafka.isolation.level", "failondataloss")
"""What has to be the same on both sides, so it is said once, among the options of the Kafka source."""
_SET_HERE = ("subscribe", "subscribepattern", "assign", "startingoffsets", "endingoffsets", "stopatoffsets", "startingtimestamp",
             "startingoffsetsbytimestamp", "endingtimestamp", "endingoffsetsbytimestamp")  # fmt: skip

Options = Mapping[str, str]
_NOT_ARCHIVED = "the broker has deleted them and they were never archived"
_NONE: Options = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where the broker takes over: an offset for each of its partitions, and those (-2) that are the broker's from the start."""

    offsets: Mapping[str, Mapping[int, int]]

    def starting_offsets(self) -> str:
        """The `startingOffsets` of Spark's Kafka source."""
        return json.dumps({topic: {str(n): o for n, o in sorted(numbers.items())} for topic, numbers in self.offsets.items()})

    def archived(self) -> Mapping[str, Mapping[int, int]]:
        """Where the archive's side ends, for the partitions of which it has any."""
        kept = {topic: {n: o for n, o in sorted(numbers.items()) if o >= 0} for topic, numbers in self.offsets.items()}
        return {topic: numbers for topic, numbers in kept.items() if numbers}


def starting_offsets(archive: str, topics: Iterable[str], keys: str | None = None) -> str:
    """The `startingOffsets` for Spark's Kafka source: the current end offsets of the archive.

    Nothing is asked of the broker, and the Kafka source wants an offset for every partition: one that has never been archived is
    not among them. With `keys`, where the archive's are, manifests are held against their signatures. Raises NotFound,
    Unavailable, Corrupt, Newer.
    """
    store = trusted(open_store(archive), keys)
    archives.open_archive(store)
    ends = {topic: {m.partition: m.end_offset for m in archives.manifests(store, topic)} for topic in topics}
    return Boundary(ends).starting_offsets()


def read(
    spark: SparkSession, archive: str, topics: Sequence[str], kafka_options: Options, archive_options: Options = _NONE
) -> DataFrame:
    """A batch read of the log on both tiers, with the columns of Spark's Kafka source.

    `kafka_options` are the options to reach the broker, and those for both tiers: includeHeaders, kafka.isolation.level and
    failOnDataLoss; `archive_options` are for the archive only, such as keys. Raises what `boundary_of` raises.
    """
    boundary = boundary_of(spark, archive, topics, kafka_options, _given(archive_options).get("keys"))
    ends = {"endingOffsets": _json(boundary.archived())}
    return _union(spark, archive, boundary, _sides(kafka_options, archive_options), ends, streaming=False)


def read_stream(
    spark: SparkSession,
    archive: str,
    topics: Sequence[str],
    kafka_options: Options,
    archive_options: Options = _NONE,
    *,
    boundary: str,
) -> DataFrame:
    """A stream of the log on both tiers: the archive is read up to the boundary, the broker from there on.

    The boundary must not change during the life of the query, also over restarts. So the first start stores it in an object at
    the address `boundary` (which has the form of an archive's), and later starts read it. It belongs to the checkpoint: delete
    both or none. Raises what `boundary_of` raises, at the first start; Conflict if two first starts differ.
    """
    keys = _given(archive_options).get("keys")
    found = kept(open_store(boundary), topics, lambda: boundary_of(spark, archive, topics, kafka_options, keys))
    stops = {"stopAtOffsets": _json(found.archived()), "startingOffsets": "earliest"}
    return _union(spark, archive, found, _sides(kafka_options, archive_options), stops, streaming=True)


def boundary_of(
    spark: SparkSession, archive: str, topics: Sequence[str], kafka_options: Options, keys: str | None = None
) -> Boundary:
    """Where the archive ends now and the broker takes over, proved to be without a hole. `keys`: as for `starting_offsets`.

    Raises NotFound for topics that the broker does not have, or has under another id, since they were deleted and created again.
    Raises MissingRange if the broker has deleted records that were not archived yet (unless failOnDataLoss is false),
    OffsetOutOfRange if it ends before the archive, and what `describe` raises.
    """
    store = trusted(open_store(archive), keys)
    archives.open_archive(store)
    lenient = _given(kafka_options).get("failondataloss", "true").strip().lower() == "false"
    broker_topics = describe(spark, kafka_options, topics)
    return taken_over(broker_topics, lambda topic: archives.newest_manifests(store, topic), lenient=lenient)


def taken_over(topics: Iterable[BrokerTopic], manifests_of: Callable[[str], Iterable[Manifest]], *, lenient: bool) -> Boundary:
    """Where the broker takes these topics over, which it has described before the archive is asked. Raises as `boundary_of`."""
    return Boundary({topic.name: take_over(topic, manifests_of(topic.name), lenient=lenient) for topic in topics})


def take_over(topic: BrokerTopic, manifests: Iterable[Manifest], *, lenient: bool) -> dict[int, int]:
    """Where the broker takes each partition over; `lenient` where data loss is allowed. Pure; raises as `boundary_of`."""
    offsets = dict.fromkeys(topic.offsets, EARLIEST_OFFSET)
    for manifest in manifests:
        name = f"{topic.name}-{manifest.partition}"
        if manifest.topic_id != topic.topic_id:
            raise NotFound(
                f"topic {topic.name} has the id {topic.topic_id} on the broker and {manifest.topic_id} in the archive: it was "
                "deleted and created again, or this is another cluster; read each separately"
            )
        if manifest.partition not in topic.offsets:
            raise NotFound(f"the broker does not have the partition {name}, which is archived; read only the archive")
        earliest, latest = topic.offsets[manifest.partition]
        end = manifest.end_offset
        if end > latest:
            raise OffsetOutOfRange(name, end, earliest, latest)
        if end < earliest and not lenient:
            raise MissingRange(name, end, earliest, reason_with(manifest.losses, end, earliest, _NOT_ARCHIVED))
        offsets[manifest.partition] = max(end, earliest)
    return offsets


def kept(store: ObjectStore, topics: Sequence[str], resolve: Callable[[], Boundary]) -> Boundary:
    """The boundary that the first start has kept, or the one that this start resolves and keeps.

    Raises Corrupt, OptionError for one of other topics, Conflict, Unknown, Unavailable, and what `resolve` raises.
    """
    try:
        return _read_boundary(store.get(BOUNDARY_KEY), topics)
    except NotFound:
        return keep(store, resolve())


def keep(store: ObjectStore, found: Boundary) -> Boundary:
    """Keeps the boundary of a first start. Raises Conflict where another start has kept another, Unknown, Unavailable."""
    try:
        store.put_if_absent(BOUNDARY_KEY, found.starting_offsets().encode())
    except AlreadyExists:
        if _read_boundary(store.get(BOUNDARY_KEY), tuple(found.offsets)) != found:
            raise Conflict(f"{store.url}: another start of the query has just stored another boundary; start again") from None
    return found


def _read_boundary(body: bytes, topics: Sequence[str]) -> Boundary:
    try:
        kept = Boundary(read_by_partition(body.decode(), "it is not what a first start has kept"))
    except ValueError as e:
        raise Corrupt(f"{e}; delete it together with the query's checkpoint", file=BOUNDARY_KEY) from e
    if set(kept.offsets) != set(topics):
        raise OptionError(
            f"the boundary that was kept is one of the topics {', '.join(kept.offsets)}, and {', '.join(topics)} are to be read; "
            "give other topics a query, a checkpoint and a boundary of their own"
        )
    return kept


def _sides(kafka_options: Options, archive_options: Options) -> tuple[Options, Options]:
    """The options of the archive's side and of the broker's. Raises OptionError for what is set here."""
    for name in (*kafka_options, *archive_options):
        if name.lower() in _SET_HERE:
            raise OptionError(f"option {name} cannot be given: both sides are read completely, up to the boundary")
    for name in archive_options:
        if name.lower() in _BOTH:
            raise OptionError(f"option {name} must be the same on both sides; set it as an option of the Kafka source")
    both = {name: value for name, value in _given(kafka_options).items() if name in _BOTH}
    return {**both, **archive_options}, kafka_options


def _union(
    spark: SparkSession, archive: str, boundary: Boundary, sides: tuple[Options, Options], bounds: Options, *, streaming: bool
) -> DataFrame:
    reader = spark.readStream if streaming else spark.read
    archive_options, kafka_options = sides
    tail = reader.format("kafka").options(**kafka_options)
    live = tail.option("subscribe", ",".join(boundary.offsets)).option("startingOffsets", boundary.starting_offsets()).load()
    archived = boundary.archived()
    if not archived:
        return live
    assigned = json.dumps({topic: list(numbers) for topic, numbers in archived.items()})
    reader = spark.readStream if streaming else spark.read
    past = reader.format("tiering").options(**archive_options, **bounds, archive=archive, assign=assigned).load()
    return past.union(live)


def _given(options: Options) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def _json(by_partition: Mapping[str, Mapping[int, int]]) -> str:
    return json.dumps({topic: {str(n): o for n, o in numbers.items()} for topic, numbers in by_partition.items()})
