"""Waits in the triggerer, which runs thousands of these in one loop, until an archive is through a time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent


class ArchivedThroughTrigger(BaseTrigger):
    """Fires when all topics are archived through a time: `{"behind": []}`, or `{"error": text}` where that can never be.

    `topics`: names or globs. `through_ms`: ms since 1970. `partitions`: those of each topic to wait for, empty for all of them.
    """

    def __init__(
        self, archive_url: str, topics: Sequence[str], through_ms: int, partitions: Sequence[int] = (), poll_seconds: float = 60.0
    ) -> None:
        super().__init__()
        self.archive_url = archive_url
        self.topics = list(topics)
        self.through_ms = through_ms
        self.partitions = list(partitions)
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How another process makes the same."""
        names = ("archive_url", "topics", "through_ms", "partitions", "poll_seconds")
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Looks every `poll_seconds`; a store that does not answer is asked again then."""
        from local_log.errors import LogError, Unavailable

        while True:
            try:
                waiting = await asyncio.to_thread(still_behind, self.archive_url, self.topics, self.through_ms, self.partitions)
            except Unavailable as e:
                self.log.warning("%s", e)
            except LogError as e:
                yield TriggerEvent({"error": str(e)})
                return
            else:
                if not waiting:
                    yield TriggerEvent({"behind": []})
                    return
                self.log.info("not archived through %d yet: %s", self.through_ms, ", ".join(waiting))
            await asyncio.sleep(self.poll_seconds)


def still_behind(archive_url: str, topics: Sequence[str], through_ms: int, partitions: Sequence[int]) -> list[str]:
    """What is not archived through a time: partitions, and topics that are not there. Raises as `archived_through`."""
    from local_log.errors import NotFound
    from remote import archive
    from remote.store.open import open_store
    from tiering.read.archived_through import archived_through, partitions_behind

    store = open_store(archive_url)
    archive.open_archive(store)
    waiting: list[str] = []
    for topic in topics:
        try:
            names = archive.matching_topics(store, [topic])
        except NotFound:
            names = ()
        found = {name: archived_through(store, name) for name in names}
        if not any(found.values()):
            waiting.append(topic)
        for name, parts in found.items():
            waiting += [
                f"{name}-{partition}" for partition in (partitions_behind(parts, through_ms, partitions) if parts else ())
            ]
    return waiting
