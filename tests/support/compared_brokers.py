"""A broker and endpoints on copies of its log directory, which are asked the same."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import real_kafka
from any_requests import LAST, Facts
from asked_by_wire import Wire
from asked_endpoint import Endpoint, response_of
from compared_answers import Compared, Difference, differences
from compared_groups import ComparedGroups, without_lives
from compared_logins import compare_login
from encodings_to_try import KEYS, transforms
from known_difference import KnownDifference
from known_topics import know
from odd_logs import odd_logs
from offsets_kept import MemoryLog
from own_endpoint import OwnEndpoint
from secured_brokers import asking_who, authorize, log_in, settings
from served_endpoint import served
from tiered_worlds import with_half_archived
from users_file import user_file

from local_log.engine.manager.config import ManagerConfig
from local_log.formats.checkpoints import read_epochs
from local_log.formats.filenames import CLUSTER_METADATA_TOPIC, HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT
from local_log.formats.list_offsets import LATEST
from remote.clock import SystemClock
from remote.manifest.model import Limits
from remote.read.context import ReadContext
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.fetch_sessions.session import NO_SESSION
from tiering.endpoint.protocol.api_keys import FETCH, LIST_OFFSETS, SASL_HANDSHAKE, Api
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.requests import Request, read_request
from tiering.endpoint.request_context import ConnectionContext
from tiering.local_tier.opening import local_tier

_SESSIONS_SINCE = 7
"""The first version of Fetch with sessions."""
_GROUP_SIZE_MAX = 3
_SETTINGS = {
    "log_retention_ms": "-1",
    "log_initial_task_delay_ms": str(86_400_000),  # it would delete the segments below a log start offset
    "auto_create_topics_enable": "false",
    "group_max_size": str(_GROUP_SIZE_MAX),
    "group_consumer_max_size": str(_GROUP_SIZE_MAX),
    "group_consumer_assignment_interval_ms": "0",
    "log_index_size_max_bytes": "65536",
    "replica_high_watermark_checkpoint_interval_ms": "200",
}


@dataclass
class Side:
    """A broker or an endpoint, and the fetch session that it gave last."""

    wire: Wire
    session: int = NO_SESSION
    epoch: int = 1

    def ask(self, api: Api, version: int, request: Any) -> Any:
        """The response, None if the connection was closed. The fetch session LAST is the last one here, with its next epoch."""
        in_session = api is FETCH and request.session_id == LAST and version >= _SESSIONS_SINCE
        if in_session:
            epoch = self.epoch if request.session_epoch == 1 else request.session_epoch
            request = replace(request, session_id=self.session, session_epoch=epoch)
        answer = self.wire.ask(api, version, request)
        if api is FETCH and answer is not None and not answer.error_code:
            if answer.session_id not in (0, self.session):
                self.session, self.epoch = answer.session_id, 1
            elif in_session and answer.session_id:
                self.epoch += 1
        return answer


@dataclass
class World:
    """A broker, and endpoints on copies of its log directory: one with all in the log directory, one with an archive."""

    folder: Path
    facts: Facts
    broker: Side
    endpoints: tuple[Side, ...]
    groups: ComparedGroups
    known: tuple[KnownDifference, ...]
    sasl: tuple[str, ...] = ()
    """The addresses of the listeners that ask who one is, the broker's first."""

    @contextmanager
    def acting_as(self, name: str) -> Iterator["World"]:
        """The same, asked by a user."""
        sides = [Side(Wire(address, partial(log_in, name=name))) for address in self.sasl]
        yield replace(self, broker=sides[0], endpoints=tuple(sides[1:]))
        for side in sides:
            side.wire.close()

    def compare(self, api: Api, version: int, request: object) -> list[tuple[Compared, Difference]]:
        """What differs in the answers, or that one has closed the connection."""
        theirs, found = without_lives(self.broker.ask(api, version, request)), list[tuple[Compared, Difference]]()
        for endpoint in self.endpoints:
            ours = endpoint.ask(api, version, request)
            compared = Compared(api, version, request, theirs, ours, self.facts.bases)
            found += [(compared, difference) for difference in differences(theirs, ours)]
        return found

    def shown(self, difference: KnownDifference) -> list[tuple[Compared, Difference]]:
        """What differs in the answers to the requests that show a difference: a single one, or those of a client or a group."""
        if len(difference.shown_by) == 1:
            return self.compare(*difference.shown_by[0])
        if difference.shown_by[0][0] is SASL_HANDSHAKE:
            return list(compare_login(difference.shown_by, self.sasl[:2]))
        return self.groups.compare(difference.shown_by, 0.1)

    def compare_frame(self, api: Api, version: int, frame: bytes) -> list[tuple[Compared, Difference]] | str:
        """The same for a frame, which may be none; or who has closed the connection, `both` or `ours` or `theirs`."""
        answers = [side.wire.ask_bytes(frame) for side in (self.broker, self.endpoints[0])]
        if None in answers:
            return "both" if not any(answers) else "ours" if answers[0] else "theirs"
        theirs, ours = (response_of(api, version, answer) for answer in answers if answer is not None)
        request = read_request(frame[4:])
        asked = request.message if isinstance(request, Request) else None
        return [(Compared(api, version, asked, theirs, ours, self.facts.bases), one) for one in differences(theirs, ours)]


@contextmanager
def compared_with(pom: Path, folder: Path, known: tuple[KnownDifference, ...], *, is_secured: bool = False) -> Iterator[World]:
    """A broker of the version that `pom` names on the odd logs, in `folder`, and endpoints on copies, which keep offsets."""
    users = user_file(folder)
    know(odd_logs(folder / "data"), pom, users.users())
    port, _ = real_kafka.free_ports()
    with ExitStack() as stack:
        broker = Wire(
            stack.enter_context(real_kafka.broker(folder, pom=pom, **_SETTINGS, **(settings(port) if is_secured else {})))
        )
        stack.callback(broker.close)
        _wait_for_leaders(broker, folder / "data")
        copy = Path(shutil.copytree(folder / "data", folder / "copy", ignore=shutil.ignore_patterns("*.tmp")))
        endpoints = (
            Endpoint(copy, None, MemoryLog()),
            _tiered(copy, folder / "half"),
            _owned(copy, folder / "own", stack),
        )
        groups = ComparedGroups(broker.address, _coordinating(copy))
        stack.callback(groups.close)
        world = World(
            copy, Facts.of(copy), Side(broker), tuple(_served(one, folder, is_secured, stack) for one in endpoints), groups, known
        )
        if is_secured:
            world.sasl = (f"127.0.0.1:{port}", *(stack.enter_context(asking_who(one, users)) for one in endpoints))
        yield world


def _tiered(whole: Path, folder: Path) -> Endpoint:
    """With an archive whose segments are compressed and encrypted, and whose manifests have pages."""
    store = with_half_archived(whole, folder, transforms("zstd+aes-256-gcm"), Limits(inline_max=4, page_entries=2))
    return Endpoint(folder, store, MemoryLog(), reading=ReadContext(partial(DecodedBytes, keys=KEYS)))


def _owned(whole: Path, folder: Path, stack: ExitStack) -> Endpoint:
    """On a copy that is its own by now."""
    shutil.copytree(whole, folder)
    config = ManagerConfig(log_dirs=(str(folder),), cleaner_enable=False)
    tier = local_tier(config, lambda topic: {"retention.ms": "-1"})
    tier.start()
    stack.callback(tier.stop)
    for partition in tier.partitions():  # the broker's controller says who leads from when on, also without any record
        last = read_epochs((whole / str(partition) / LEADER_EPOCH_CHECKPOINT).read_bytes())[-1:]
        for epoch in last:
            tier.log(partition).epochs.assign(epoch.epoch, epoch.start_offset)
    endpoint = OwnEndpoint(tier, offsets=MemoryLog())
    endpoint.context = replace(endpoint.context, local_tier=None)  # for what it reads: nothing is to be written
    return endpoint


def _served(endpoint: Endpoint, folder: Path, is_secured: bool, stack: ExitStack) -> Side:
    endpoint.clock.now = SystemClock().now_ms()
    if is_secured:
        authorize(endpoint, Path(tempfile.mkdtemp(dir=folder)))
    host, port = stack.enter_context(served(endpoint))
    side = Side(Wire(f"{host}:{port}"))
    stack.callback(side.wire.close)
    return side


def _coordinating(folder: Path) -> Endpoint:
    config = GroupCoordinatorConfig(
        group_initial_rebalance_delay_ms=0,
        group_max_size=_GROUP_SIZE_MAX,
        consumer_group_max_size=_GROUP_SIZE_MAX,
        consumer_group_assignment_interval_ms=0,
    )
    endpoint = Endpoint(folder, None, MemoryLog(), group_config=config)
    endpoint.connection = ConnectionContext("0", "127.0.0.1", 50_000)
    return endpoint


def _wait_for_leaders(broker: Wire, data: Path) -> None:
    """Until the broker leads every partition, and has written down each leader epoch and high watermark."""
    folders = {path.parent for path in data.glob("*/partition.metadata")} - {data / f"{CLUSTER_METADATA_TOPIC}-0"}
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if sum(1 for folder in folders if _is_written(broker, folder)) == len(folders):
            return
        time.sleep(0.05)
    raise AssertionError("the broker does not lead all partitions")


def _is_written(broker: Wire, folder: Path) -> bool:
    topic, _, number = folder.name.rpartition("-")
    latest = ListOffsetsRequest(-1, topics=(ListOffsetsTopic(topic, (ListOffsetsPartition(int(number), timestamp=LATEST),)),))
    found = broker.ask(LIST_OFFSETS, 7, latest).topics[0].partitions[0]
    epochs = (folder / LEADER_EPOCH_CHECKPOINT).read_text().splitlines()
    high_watermarks = (folder.parent / HIGH_WATERMARK_CHECKPOINT).read_text().splitlines()
    is_led = not found.error_code and epochs[-1].startswith(f"{found.leader_epoch} ")
    return is_led and f"{topic} {number} {found.offset}" in high_watermarks
