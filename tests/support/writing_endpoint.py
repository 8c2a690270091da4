"""An endpoint with log directories of its own, on a simulated disk: what clients make and append, and what is in the logs."""

from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

from asked_endpoint import Endpoint
from local_tiers import Host

from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.filenames import TopicPartition
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import Acl
from tiering.endpoint.authorization.authorizer import AclIndex, Authorizer
from tiering.endpoint.protocol.api_keys import PRODUCE
from tiering.endpoint.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tiering.local_tier.local_tier import LocalTier

IDS_SINCE = 13


class Acls:
    """Who may do what, without a file."""

    def __init__(self, *acls: Acl) -> None:
        self.authorizer = Authorizer(AclIndex(acls))

    def look(self) -> None:
        """Nothing changes."""


def allowed(context: Context, *acls: Acl) -> Context:
    """The same, where a client may do only this."""
    return replace(context, acls=Acls(*acls))  # type: ignore[arg-type]


class ByHand(Executor):
    """Does what it is given when it is told to."""

    def __init__(self) -> None:
        self.due: list[Any] = []

    def submit(self, fn: Any, /, *args: Any, **options: Any) -> Future[Any]:
        """See Executor."""
        self.due.append(fn)
        return Future()

    def run(self) -> None:
        """The first of what was given."""
        self.due.pop(0)()


class WritingEndpoint(Endpoint):
    """One with the topic `orders` of one partition."""

    def __init__(self, host: Host | None = None, **config: Any) -> None:
        super().__init__(None, None)
        self.host = host or Host()
        self.own(self.host.started(**config))
        self.tier.create_topic("orders")

    @property
    def tier(self) -> LocalTier:
        """The log directories."""
        assert self.context.local_tier is not None
        return self.context.local_tier

    def own(self, tier: LocalTier) -> None:
        """Writes into the logs of this tier from now on."""
        self.context = replace(self.context, local_tier=tier)

    def log(self, topic: str = "orders", number: int = 0) -> UnifiedLog:
        """A partition's log."""
        return self.tier.log(TopicPartition(topic, number))

    def batches(self, topic: str = "orders", number: int = 0) -> list[MemoryBatch]:
        """All that is in a partition's log."""
        return memory_batches(self.log(topic, number).read(0, 1 << 30).records)

    def produce(
        self, records: bytes | None, topic: str = "orders", number: int = 0, *, version: int = 12, **more: Any
    ) -> PartitionProduceResponse:
        """The answer to an append to one partition, by the topic's id where the version has ids."""
        parts = None if records is None else (records,) if records else ()
        found = self.ask(PRODUCE, version, self.asked(topic, {number: parts}, version, **more))
        [of_topic] = found.responses
        [answer] = of_topic.partition_responses
        assert answer.index == number
        return answer

    def asked(
        self, topic: str, parts: Any, version: int, *, acks: int = -1, transactional_id: str | None = None
    ) -> ProduceRequest:
        """A request to append to partitions of one topic."""
        partitions = tuple(PartitionProduceData(number, one) for number, one in parts.items())
        known = self.tier.topics().get(topic)
        named = TopicProduceData(topic, partition_data=partitions)
        if version >= IDS_SINCE and known is not None:
            named = TopicProduceData(topic_id=known.topic_id or "", partition_data=partitions)
        return ProduceRequest(transactional_id, acks, 1000, (named,))
