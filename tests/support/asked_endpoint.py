"""The endpoint's answers without its sockets: a request of one version in, the response of that version out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from archive_fakes import CountingIds, SleptClock
from logs_to_archive import offload_all
from tiered_worlds import World

from local_log.file_range import FileRange
from local_log.formats.primitives import Buffer
from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk
from remote.read.context import ReadContext
from remote.store.api import ObjectStore
from remote.store.open import open_store
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.kafka_apis import Later, Throttled, Waits, handle
from tiering.endpoint.brokers.live_brokers import Broker, alone
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offsets_log import OffsetsLog
from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.manager import FetchManager
from tiering.endpoint.hosted_logs import HostedLogs
from tiering.endpoint.hosted_topics import HostedTopics
from tiering.endpoint.protocol.api_keys import API_VERSIONS, APIS, Api
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.reads import Reads
from tiering.endpoint.request_context import ConnectionContext
from tiering.endpoint.settings import read_settings
from tiering.wiring import Tiers


class Endpoint:
    """Over a log directory, an archive or both; `said` is what was reported."""

    def __init__(
        self,
        folder: Path | None,
        store: ObjectStore | None,
        offsets: OffsetsLog | None = None,
        *,
        clock: Any = None,
        reading: ReadContext | None = None,
        group_config: GroupCoordinatorConfig = GroupCoordinatorConfig(),  # noqa: B008  # frozen
    ) -> None:
        self.clock = clock or SleptClock()
        self.said: list[str] = []
        self.connection = ConnectionContext("0", "192.0.2.1", 50_000)
        tiers = Tiers(None if folder is None else LogDir(OsDisk(), str(folder)), store, reading or ReadContext())
        self.sessions = FetchSessionCache(CountingIds())
        logs, cluster = HostedLogs(tiers, self.clock, report=self.said.append), alone(Broker(1, "broker.test", 9092))
        groups = GroupCoordinator(group_config, offsets, self.clock, CountingIds(), self.said.append, HostedTopics(logs))
        groups.load()
        self.context = Context(logs, Reads(), FetchManager(self.sessions), self.clock, cluster, self.said.append, groups)

    def configure(self, *assignments: str) -> None:
        """Settings by Kafka's names, as in `fetch.max.bytes=2048`."""
        self.context = replace(self.context, settings=read_settings(assignments))

    def ask(self, api: Api, version: int, message: object) -> Any:
        """The response, None if a fetch waits, or the Later of what other requests answer. It must have nothing after its end."""
        frame = write_request(RequestHeader(api, version, 99, "test"), message)[4:]
        found = handle(frame, self.connection, self.context)
        found = found.parts if isinstance(found, Throttled) else found
        if isinstance(found, Waits | Later):
            return None if isinstance(found, Waits) else found
        return response_of(api, version, b"".join(map(bytes_of, found)))

    def answer_of(self, later: Later) -> Any:
        """The response that must be there now."""
        assert later.response.done()
        return response_of(later.header.api, later.header.version, b"".join(map(bytes_of, later.parts())))

    def fetch(
        self, topic: str, offset: int, max_bytes: int = 1 << 30, *, version: int = 11, level: int = 0, **more: int
    ) -> PartitionData:
        """One partition's answer."""
        asked = FetchPartition(0, fetch_offset=offset, partition_max_bytes=max_bytes, **more)
        found = self.ask(APIS[1], version, FetchRequest(topics=(self.topic(topic, version, asked),), isolation_level=level))
        return found.responses[0].partitions[0]

    def topic(self, name: str, version: int, *partitions: FetchPartition) -> FetchTopic:
        """By name or by id, as the version asks for."""
        if version < 13:
            return FetchTopic(name, partitions=partitions)
        known = self.context.logs.topic(name)
        assert known is not None
        return FetchTopic(topic_id=known.id, partitions=partitions)


def over_each_tier(world: World, folder: Path) -> list[Endpoint]:
    """Endpoints over a log directory, over it with an archive behind it, and over an archive alone, which is made in `folder`."""
    archive = open_store(str(folder))
    offload_all(world.folders["local alone"], archive)
    return [
        Endpoint(world.folders["local alone"], None),
        Endpoint(world.folders["some archived dropped"], world.store),
        Endpoint(None, archive),
    ]


def bytes_of(part: Buffer | FileRange) -> bytes:
    """As they are sent."""
    return part.read() if isinstance(part, FileRange) else bytes(part)


def response_of(api: Api, version: int, data: bytes) -> Any:
    """The message of a whole frame."""
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    assert int.from_bytes(data[4:8], "big") == 99
    is_flexible = api.is_flexible(version)
    start = 9 if is_flexible and api is not API_VERSIONS else 8
    return read_message(api.response, version, data, start, flexible=is_flexible)
