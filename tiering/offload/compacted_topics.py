"""Of which topics what the log cleaner has compacted is archived again, in place of what is archived.

Kafka's tiered storage refuses compacted topics. Here each version of a key stays in the archive unless somebody says otherwise,
since what is superseded cannot be had again: the local log does not have it any more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from local_log.errors import LogError
from local_log.log_reader import LogReader
from tiering.cluster import Cluster


@dataclass(frozen=True, slots=True)
class ReplacedTopics:
    """The topics that match one of `globs`, unless the metadata of their cluster says that they are not compacted.

    Without metadata the log directory's cleaner-offset-checkpoint is left to say it, which has only logs that were compacted.
    """

    globs: tuple[str, ...]
    cluster: Cluster

    def __call__(self, log: LogReader) -> bool:
        """Whether what was cleaned of a log takes the place of what is archived. If the metadata cannot be read, it does not."""
        if not matches(self.globs, log.partition.topic):
            return False
        try:
            known = self.cluster.retention(log.partition.topic, log.topic_id)
        except LogError:
            return False
        return known is None or known.cleanup_policy is None or "compact" in known.cleanup_policy


def matches(globs: Iterable[str], topic: str) -> bool:
    """Whether a topic matches one of the globs."""
    return any(fnmatchcase(topic, glob) for glob in globs)
