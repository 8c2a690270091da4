"""What a start of a LocalTier reads and writes in one log directory, before and after its logs are opened."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from local_log.cluster.metadata import read_cluster_image
from local_log.disk import Disk, replace_file
from local_log.engine.manager.data_dir import DataDir
from local_log.engine.manager.guarded_disk import Offline, unless_offline
from local_log.engine.manager.managed_log import topic_id_in
from local_log.errors import Corrupt, LogError, NotFound, listed, placed
from local_log.formats.filenames import META_PROPERTIES, STRAY_DIR, TOPICS, TopicPartition, marked_log_dir
from local_log.formats.meta_properties import write_meta_properties
from local_log.formats.partition_metadata import new_uuid
from local_log.log_dir import LogDir, is_new
from tiering.local_tier.adoption import Folder, Renaming
from tiering.local_tier.topics import taken_over
from tiering.local_tier.topics_file import Topics, read_topics

NODE_ID: Final = 1
"""The node id of directories that are new; a broker that is to start on one needs this node.id and its cluster.id."""


def read_file(directory: DataDir) -> dict[str, Topics]:
    """The directory's topics by the path of their file; empty if it has none. Raises Corrupt, Newer, Offline."""
    return topics_in(directory.disk, directory.path)


def topics_in(disk: Disk, path: str) -> dict[str, Topics]:
    """The same of a directory that nobody may have open. Raises Corrupt, Newer, Unreadable."""
    file = f"{path}/{TOPICS}"
    with suppress(NotFound), placed(file):
        return {file: read_topics(disk.read(file))}
    return {}


def read_all(directories: Iterable[DataDir], name: str) -> dict[str, bytes]:
    """A file's content by its path, in those of the directories that are online and have it."""
    found = {f"{one.path}/{name}": unless_offline(partial(_content, one, name)) for one in directories}
    return {path: data for path, data in found.items() if data is not None}


def _content(directory: DataDir, name: str) -> bytes | None:
    with suppress(NotFound):
        return directory.disk.read(f"{directory.path}/{name}")
    return None


def replace_all(directories: Iterable[DataDir], name: str, data: bytes) -> None:
    """Replaces a file, durably, in those of the directories that are and stay online."""
    for one in directories:
        unless_offline(partial(replace_file, one.disk, f"{one.path}/{name}", data))


def folders_in(directory: DataDir) -> list[Folder]:
    """The folders of its logs but those that are deleted, set aside or future ones. Raises Offline, Invalid for a foreign folder.

    A folder whose topic id cannot be read is left out: its log cannot be opened, either.
    """
    folders: list[Folder] = []
    for found in directory.folders():
        if not found.name.mark:
            with suppress(Corrupt):
                folders.append(Folder(found.path, found.name.partition, topic_id_in(directory, found.path)))
    return folders


def rename_all(directories: Sequence[DataDir], planned: Iterable[Renaming], new_id: Callable[[], str]) -> Iterator[str]:
    """Renames the folders where their directories are online; gives a message for each."""
    for one in planned:
        for directory in directories:
            if one.folder.path == f"{directory.path}/{one.folder.partition}":
                with suppress(Offline):
                    yield _renamed(directory, one, new_id())


def _renamed(directory: DataDir, renaming: Renaming, unique_id: str) -> str:
    folder = renaming.folder
    path = directory.rename(folder.path, marked_log_dir(folder.partition, unique_id, renaming.mark))
    done = "set aside as" if renaming.mark == STRAY_DIR else "to be deleted, as"
    return f"{folder.path}: {renaming.why}; {done} {path}"


def settings_of_brokers(directories: Iterable[DataDir]) -> dict[str, dict[str, str]]:
    """The settings of the topics, by topic id, that a broker has left in its cluster's metadata; the newest count."""
    images = (unless_offline(partial(read_cluster_image, one.disk, one.path)) for one in directories)
    newest_last = sorted((image for image in images if image is not None), key=lambda image: image.end_offset)
    return {t.topic_id: taken_over(t.configs) for image in newest_last for t in image.topics.values()}


def has(directory: DataDir, topics: Topics) -> bool:
    """Whether the directory's file says the same."""
    with suppress(LogError):
        return [*read_file(directory).values()] == [topics]
    return False


def format_new(directories: Sequence[DataDir], new_id: Callable[[], str]) -> None:
    """Gives those of the directories without any log the file that a broker needs to start on them."""
    properties = (unless_offline(LogDir(one.disk, one.path).properties) or {} for one in directories)
    known = next((found for found in properties if "cluster.id" in found), {})
    cluster_id, node_id = known.get("cluster.id") or new_uuid(new_id), known.get("node.id") or str(NODE_ID)
    for one in directories:
        body = write_meta_properties(cluster_id, node_id, new_uuid(new_id))
        unless_offline(partial(_format_if_new, one, body))


def _format_if_new(directory: DataDir, properties: bytes) -> None:
    if not _has_properties(directory) and not directory.folders():
        replace_file(directory.disk, f"{directory.path}/{META_PROPERTIES}", properties)


def _has_properties(directory: DataDir) -> bool:
    """Whether there is more than the empty file by which a user says that a disk is new."""
    with suppress(NotFound):
        return directory.disk.size(f"{directory.path}/{META_PROPERTIES}") > 0
    return False


def refuse_unmounted(directory: DataDir, known: Topics, missing: Sequence[TopicPartition]) -> None:
    """Takes a directory offline that has nothing although it has been used, while partitions are missing. Raises Offline.

    Nothing may be written there: it is most likely a mount point without its disk. A file of topics from before `directories`
    does not say which ones have been used, so that any may be.
    """
    if not missing or not is_new(directory.disk, directory.path):
        return
    if not known.directories or directory.disk.real_path(directory.path) in known.directories:
        raise directory.disk.fail(
            f"it is empty, and there is no log of {listed(map(str, missing))}; mount its disk, or, if it is a new one, create an "
            f"empty {META_PROPERTIES} there"
        )
