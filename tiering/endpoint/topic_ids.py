"""Which topic has an id, also if nobody asked this endpoint for the topic by name: clients learn ids from other brokers, too."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from local_log.errors import LogError
from remote.parallel import in_order
from tiering.wiring import Tiers

THREADS: Final = 16


@dataclass(slots=True)
class TopicIds:
    """The ids in both tiers, as they were when the topics were listed last. A topic that was deleted may still have one."""

    _name_of: Mapping[str, str] = field(default_factory=dict)
    _listed_ms: int | None = None
    _looking: threading.Lock = field(default_factory=threading.Lock)
    """Of who looks at all topics. The others are answered meanwhile with what was known before, if anything was."""

    def name_of(self, topic_id: str, tiers: Tiers, names: tuple[str, ...], listed_ms: int | None) -> str | None:
        """The name of the topic that has or had the id, among topics that were listed at `listed_ms`."""
        if self._listed_ms != listed_ms and self._looking.acquire(blocking=self._listed_ms is None):
            try:
                if self._listed_ms != listed_ms:
                    self._name_of = _index(tiers, names)
                    self._listed_ms = listed_ms
            finally:
                self._looking.release()
        return self._name_of.get(topic_id)


def _index(tiers: Tiers, names: tuple[str, ...]) -> dict[str, str]:
    def ids(name: str) -> tuple[str, ...]:
        try:
            return tiers.topic_ids(name)
        except LogError:
            return ()

    with in_order(ids, names, THREADS) as each:
        return {topic_id: name for name, found in zip(names, each, strict=True) for topic_id in found}
