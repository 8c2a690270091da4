"""What the endpoint asks of the topics that it serves: those of archives and of directories that are read, and its own."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from local_log.disk import Disk
from local_log.errors import LogError
from tiering.endpoint.hosted_logs import HostedTopic, Log, Partition


class Logs(Protocol):
    """Topics by name and id. Many threads ask; see `HostedLogs` and `OwnLogs`."""

    def names(self) -> tuple[str, ...]:
        """The names of all topics. Raises LogError."""

    def topic(self, name: str) -> HostedTopic | None:
        """A topic, None if there is none. Raises LogError."""

    def known(self) -> Mapping[str, HostedTopic]:
        """The topics that were opened, as they were last seen."""

    def at_hand(self, name: str) -> HostedTopic | None:
        """A topic if `topic` would give it at once."""

    def recent(self, name: str) -> HostedTopic | None:
        """A topic as it was a moment ago; None if it has to be waited for."""

    def open_soon(self, name: str) -> None:
        """Has a topic looked at in the background, where topics have to be looked at."""

    def everything(self) -> dict[str, HostedTopic | LogError]:
        """All topics by name, in order; why it cannot be opened in the place of one. Raises LogError."""

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic with this id, if the topic was opened before."""

    def topic_by_id(self, topic_id: str) -> HostedTopic | None:
        """The topic with this id, None if there is none. Raises LogError."""

    def open_by_id(self, topic_ids: Iterable[str]) -> None:
        """Opens the topics with these ids, so that `name_of` knows them."""

    def outdated(self, name: str) -> None:
        """Something was not there: the topic's manifests are to be loaded anew."""

    def reloaded(self, name: str, since_ms: int) -> HostedTopic | None:
        """The topic as the archive has it at `since_ms` or later. Raises LogError."""

    def watch(
        self, seen: Mapping[Partition, Log], wake: Callable[[], object], least_bytes: Callable[[], int]
    ) -> Callable[[], object] | None:
        """Has `wake` called once the logs have so many bytes more than was seen, or one is gone; gives what ends that.

        Any thread may call it. None where nobody tells: the logs have to be looked at.
        """

    def directories(self) -> tuple[tuple[str, Disk | None], ...]:
        """Where the logs are, with the disk; None for an archive."""

    def close(self) -> None:
        """Nothing more is opened."""
