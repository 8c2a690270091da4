"""An endpoint with log directories of its own and groups, asked where answers may not wait."""

from dataclasses import replace
from typing import Any

from archive_fakes import CountingIds
from asked_endpoint import bytes_of, response_of
from local_tiers import Host
from writing_endpoint import WritingEndpoint

from tiering.endpoint.apis.kafka_apis import handle_at_once
from tiering.endpoint.appends.free_room import CoordinatorsRoom
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.own_logs import OwnLogs
from tiering.endpoint.protocol.api_keys import OFFSET_COMMIT, Api
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.local_tier.reads import TierReads

KEPT_FREE = 128 << 20
CONFIG = GroupCoordinatorConfig(offsets_topic_partitions=1, group_initial_rebalance_delay_ms=0)


class CommittingEndpoint(WritingEndpoint):
    """Its log of offsets has two batches, with which all is known that the next appends need."""

    def __init__(self) -> None:
        super().__init__(Host(dirs=("/a",), settings={}))
        self.start()
        for offset in (1, 2):
            self.handled(offset)()

    def start(self) -> None:
        """Takes up what the log has."""
        offsets = OffsetsTopic.of(self.tier, CONFIG, CoordinatorsRoom(KEPT_FREE, self.clock))
        groups = GroupCoordinator(CONFIG, offsets, self.clock, CountingIds(), self.said.append)
        groups.load()
        self.context = replace(self.context, groups=groups, logs=OwnLogs(TierReads(self.tier, None), self.host.disk))

    def offset(self) -> int:
        """What the group has committed."""
        found = self.context.groups.fetch_offsets(OffsetFetchRequestGroup("readers", topics=None), require_stable=False)
        return next((topic.partitions[0].committed_offset for topic in found.topics), -1)

    def offsets_log(self) -> Any:
        """The log of offsets."""
        return self.log("__consumer_offsets")

    def at_once(self, api: Api, version: int, message: object) -> Any:
        """What comes at once: the response, a call, or the Later of it."""
        frame = write_request(RequestHeader(api, version, 99, "test"), message)[4:]
        found = handle_at_once(frame, self.connection, replace(self.context, may_wait=False))
        return response_of(api, version, b"".join(map(bytes_of, found))) if isinstance(found, list) else found

    def handled(self, offset: int, topic: str = "orders", version: int = 9) -> Any:
        """What comes at once of a commit, by the topic's id where the version has ids."""
        of = {"topic_id": topic} if version >= 10 else {"name": topic}
        of_topic = OffsetCommitRequestTopic(partitions=(OffsetCommitRequestPartition(0, offset, committed_metadata=""),), **of)
        return self.at_once(OFFSET_COMMIT, version, OffsetCommitRequest("readers", topics=(of_topic,)))
