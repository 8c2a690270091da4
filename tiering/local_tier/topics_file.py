"""`tiering-topics.json` in each log directory that we own: all topics with their ids, partitions and settings.

    {"format": 1, "version": 7, "topics": {"orders": {"id": "…", "partitions": [0, 1], "config": {"retention.ms": "1000"}}},
     "deleted": {"<topic id>": "payments"}, "directories": ["/disk1/logs", "/disk2/logs"]}

Every directory has the whole file, so that a copy of one disk is enough. Of several the one with the greatest version counts: a
crash may come between two writes, and a directory may have been offline. Directories that were used apart may each have topics
that the other lacks; see `adoption.merged`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from local_log.errors import Corrupt, Newer
from local_log.formats.filenames import TOPICS, TopicPartition
from local_log.formats.primitives import Buffer

FORMAT: Final = 1
DELETED_MAX: Final = 1_000
"""How many ids of deleted topics are kept; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the log directories.

    `topic_id` is None for a topic from before topic ids. `config` has only its own settings, by Kafka's names. `being_made`
    are partitions that may have no folder yet. The others had one, also while their disk is away. `log_start_offsets` are of
    the tiered partitions, see `followed_starts`.
    """

    topic_id: str | None
    partitions: tuple[int, ...]
    config: Mapping[str, str] = field(default_factory=dict)
    being_made: tuple[int, ...] = ()
    log_start_offsets: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Topics:
    """The content of the file.

    `deleted` are the ids of deleted topics, with their names, of which a directory may still have folders: one that was offline,
    or not mounted, when the topic was deleted. The last deleted one is at the end. `directories` are the resolved paths of the
    log directories that have been used together.
    """

    topics: Mapping[str, Topic] = field(default_factory=dict)
    deleted: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    directories: tuple[str, ...] = ()

    def with_topic(self, name: str, topic: Topic) -> "Topics":
        """With this topic, new or changed."""
        return replace(self, topics={**self.topics, name: topic})

    def without(self, name: str) -> "Topics":
        """Without a topic, whose folders are to be deleted."""
        topic_id = self.topics[name].topic_id
        deleted = {**self.deleted, topic_id: name} if topic_id is not None else self.deleted
        kept = dict([*deleted.items()][-DELETED_MAX:])
        return replace(self, topics={n: topic for n, topic in self.topics.items() if n != name}, deleted=kept)

    def without_deleted(self, topic_id: str) -> "Topics":
        """Without the id of a deleted topic: no directory has a folder of it any more."""
        return replace(self, deleted={i: name for i, name in self.deleted.items() if i != topic_id})

    def used(self, directories: Iterable[str]) -> "Topics":
        """With these paths of log directories, too."""
        return replace(self, directories=tuple(sorted({*self.directories, *directories})))

    def missing(self, there: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """The partitions that are not there, sorted; also those that are being made."""
        partitions = {TopicPartition(name, number) for name, topic in self.topics.items() for number in topic.partitions}
        return tuple(sorted(partitions.difference(there)))


def read_topics(buffer: Buffer) -> Topics:
    """The topics. Raises Corrupt, Newer."""
    try:
        content = json.loads(bytes(buffer))
        if content["format"] > FORMAT:
            raise Newer(
                f"{TOPICS} has format {content['format']}, and this version reads {FORMAT} at most; use the version that wrote it"
            )
        return Topics(
            {str(name): _topic(body) for name, body in content["topics"].items()},
            {str(topic_id): str(name) for topic_id, name in content["deleted"].items()},
            int(content["version"]),
            tuple(sorted(str(path) for path in content.get("directories", ()))),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(
            f"not the topics of a log directory ({type(e).__name__}); copy the file from another log directory or a backup, or "
            "delete it: topics are then found by their folders, without their own settings"
        ) from e


def _topic(body: Mapping[str, Any]) -> Topic:
    config = {str(name): str(text) for name, text in body["config"].items()}
    topic_id = None if body["id"] is None else str(body["id"])
    partitions, being_made = ({int(n) for n in numbers} for numbers in (body["partitions"], body.get("being_made", ())))
    starts = {int(number): int(offset) for number, offset in body.get("log_start_offsets", {}).items()}
    return Topic(topic_id, tuple(sorted(partitions)), config, tuple(sorted(being_made & partitions)), starts)


def write_topics(topics: Topics) -> bytes:
    """The bytes of the file."""
    rows = {name: _row(topic) for name, topic in sorted(topics.topics.items())}
    content = {"format": FORMAT, "version": topics.version, "topics": rows, "deleted": dict(topics.deleted)}
    content |= {"directories": list(topics.directories)} if topics.directories else {}
    return json.dumps(content, indent=1).encode() + b"\n"


def _row(topic: Topic) -> dict[str, Any]:
    row = {"id": topic.topic_id, "partitions": list(topic.partitions), "config": dict(sorted(topic.config.items()))}
    row |= {"being_made": list(topic.being_made)} if topic.being_made else {}
    return row | ({"log_start_offsets": dict(topic.log_start_offsets)} if topic.log_start_offsets else {})
