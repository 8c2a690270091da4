"""What the files of topics and the folders of logs say together when log directories are opened. Pure.

The directories may have been a broker's meanwhile, may have been used apart, and may have been absent while topics were deleted
and created. Of one name there is one topic; a log of another one is set aside under Kafka's `-stray` suffix before any is opened,
and one of a topic that was deleted here is deleted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from local_log.formats.filenames import DELETE_DIR, STRAY_DIR, TopicPartition
from tiering.local_tier.topics_file import Topic, Topics

Settings = Mapping[str, Mapping[str, str]]
"""The settings of the topics that a broker has, by topic id."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A log's folder. `topic_id` is None for a topic from before topic ids, or if a crash came before it was written."""

    path: str
    partition: TopicPartition
    topic_id: str | None


@dataclass(frozen=True, slots=True)
class Renaming:
    """A folder that gets the suffix `mark`, and why."""

    folder: Folder
    mark: str
    why: str


def merged(files: Mapping[str, Topics], folders: Iterable[Folder]) -> tuple[Topics, tuple[str, ...]]:
    """The topics of the newest file, with topics that only an older one has, and messages about those.

    `files` are by path. A topic that a newer file lacks was deleted, unless there is a folder of it: then it was created while
    the directories were used apart. If a file has a topic that a newer one says is deleted, or the other way round, the newer
    one counts.
    """
    newest_first = sorted(files.items(), key=lambda file: -file[1].version)
    if not newest_first:
        return Topics(), ()
    there = {(folder.partition.topic, folder.topic_id) for folder in folders}
    (newest, known), *older = newest_first
    messages: list[str] = []
    for path, topics in older:
        if topics.version == known.version and topics != files[newest]:
            messages.append(
                f"{path} and {newest} differ and have the same version, since their log directories were used apart; where both "
                f"have a topic, the settings of {newest} count"
            )
        taken = {
            name: topic for name, topic in topics.topics.items()
            if name not in known.topics and topic.topic_id not in known.deleted and (name, topic.topic_id) in there
        }  # fmt: skip
        messages += (f"{path}: topic {name} is taken from here, since {newest}, which is newer, lacks it" for name in taken)
        known = replace(known, topics={**known.topics, **taken})
        live = {topic.topic_id for topic in known.topics.values()}
        deleted = {topic_id: name for topic_id, name in topics.deleted.items() if topic_id not in live}
        known = replace(known, deleted={**deleted, **known.deleted}).used(topics.directories)
    return known, tuple(messages)


def adopted(known: Topics, folders: Sequence[Folder], of_brokers: Settings) -> Topics:
    """The topics as their folders say.

    A topic that a broker has created is adopted, and one that it has created anew, with another id, is another topic, unless
    there are folders of the known one. A folder without an id is one that a crash has kept from getting it. A known topic without
    an id is the one that a broker has given an id.
    """
    topics = dict(known.topics)
    for name, here in _by_name(folders).items():
        was = known.topics.get(name)
        ids = [f.topic_id for f in here if f.topic_id is not None and f.topic_id not in known.deleted]
        if was is not None and (was.topic_id in ids or not ids):
            topic = was
        elif ids:  # of several unknown ones, the one that a broker's metadata has
            topic_id = next((one for one in ids if one in of_brokers), ids[0])
            same = was if was is not None and was.topic_id is None else Topic(None, ())
            topic = replace(same, topic_id=topic_id, config=of_brokers.get(topic_id, same.config))
        elif any(f.topic_id is None for f in here) and name not in known.deleted.values():
            topic = Topic(None, ())
        else:
            continue
        numbers = {f.partition.partition for f in here if f.topic_id in (None, topic.topic_id)}
        topics[name] = replace(topic, partitions=tuple(sorted(numbers.union(topic.partitions))))
    return replace(known, topics=topics)


def renamings(topics: Topics, folders: Iterable[Folder]) -> tuple[Renaming, ...]:
    """The folders of deleted topics, which are deleted, and those of no topic, which are set aside; `topics` are adopted."""
    found: list[Renaming] = []
    for folder in folders:
        name, topic_id = folder.partition.topic, folder.topic_id
        topic = topics.topics.get(name)
        if topic_id in topics.deleted:
            found.append(Renaming(folder, DELETE_DIR, f"topic {name} with the id {topic_id} was deleted"))
        elif topic is None:
            found.append(Renaming(folder, STRAY_DIR, f"it has no topic id, and topic {name} was deleted"))
        elif topic_id not in (None, topic.topic_id):
            found.append(Renaming(folder, STRAY_DIR, f"its topic id is {topic_id}, and topic {name} has {topic.topic_id}"))
    return tuple(found)


def _by_name(folders: Iterable[Folder]) -> dict[str, list[Folder]]:
    """The folders by topic, those of its first partitions first."""
    found: dict[str, list[Folder]] = {}
    for folder in sorted(folders, key=lambda f: (f.partition, f.path)):
        found.setdefault(folder.partition.topic, []).append(folder)
    return found
