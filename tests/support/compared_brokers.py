"""A broker and endpoints on copies of its log directory, which are asked the same."""

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any

import real_kafka
from any_requests import LAST, Facts, any_message, of_groups
from asked_by_wire import CORRELATION_ID, Wire
from asked_endpoint import Endpoint, response_of
from compared_answers import Difference, differences
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from known_differences import Compared, KnownDifference
from known_topics import know
from mutated_frames import mutated_body
from odd_logs import odd_logs
from offsets_kept import MemoryLog
from served_endpoint import served
from tiered_worlds import with_half_archived

from local_log.formats.filenames import CLUSTER_METADATA_TOPIC, HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT
from local_log.formats.list_offsets import LATEST
from remote.clock import SystemClock
from tiering.endpoint.fetch_sessions.session import NO_SESSION
from tiering.endpoint.protocol.api_keys import FETCH, LIST_OFFSETS, Api
from tiering.endpoint.protocol.errors import InvalidRequest
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.requests import Request, RequestHeader, read_request, write_request

EACH = int(os.environ.get("COMPARED_REQUESTS", "40"))
_SESSIONS_SINCE = 7
"""The first version of Fetch with sessions."""
_SETTINGS = {
    "log_retention_ms": "-1",
    "log_initial_task_delay_ms": str(86_400_000),  # it would delete the segments below a log start offset
    "auto_create_topics_enable": "false",
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

    facts: Facts
    broker: Side
    endpoints: tuple[Side, ...]

    def compare(self, api: Api, version: int, request: object) -> list[tuple[Compared, Difference]]:
        """What differs in the answers, or that one has closed the connection."""
        theirs, found = self.broker.ask(api, version, request), list[tuple[Compared, Difference]]()
        for endpoint in self.endpoints:
            ours = endpoint.ask(api, version, request)
            compared = Compared(api, version, request, theirs, ours, self.facts.bases)
            found += [(compared, difference) for difference in differences(theirs, ours)]
        return found

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
def compared_with(pom: Path, folder: Path) -> Iterator[World]:
    """A broker of the version that `pom` names on the odd logs, in `folder`, and endpoints on copies, which keep offsets."""
    know(odd_logs(folder / "data"), pom)
    with ExitStack() as stack:
        broker = Wire(stack.enter_context(real_kafka.broker(folder, pom=pom, **_SETTINGS)))
        stack.callback(broker.close)
        _wait_for_leaders(broker, folder / "data")
        copy = Path(shutil.copytree(folder / "data", folder / "copy", ignore=shutil.ignore_patterns("*.tmp")))
        store = with_half_archived(copy, folder / "half")
        endpoints = []
        for endpoint in (Endpoint(copy, None, MemoryLog()), Endpoint(folder / "half", store, MemoryLog())):
            endpoint.clock.now = SystemClock().now_ms()
            host, port = stack.enter_context(served(endpoint))
            endpoints.append(Wire(f"{host}:{port}"))
            stack.callback(endpoints[-1].close)
        yield World(Facts.of(copy), Side(broker), tuple(map(Side, endpoints)))


def known(found: tuple[Compared, Difference], differences: tuple[KnownDifference, ...]) -> str | None:
    """Which of the differences that we know of it is."""
    return next((one.what for one in differences if one.holds(*found)), None)


def compare_frames(world: World, api: Api, versions: range, known_differences: tuple[KnownDifference, ...]) -> Counter[str]:
    """Requests with something wrong in them: whoever answers them answers the same. Gives how many were answered and closed."""
    random, found = Random(api.key), Counter[str]()
    values = world.facts.values()
    requests = {version: any_message(api.request, version, values) for version in versions}
    how = settings(max_examples=max(5, EACH // 10), derandomize=True, deadline=None, database=None)

    @settings(how, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(versions).flatmap(lambda version: st.tuples(st.just(version), requests[version])))
    def ask(asked: tuple[int, Any]) -> None:
        version, request = asked
        frame = write_request(RequestHeader(api, version, CORRELATION_ID, "test"), request)
        for _ in range(5):
            mutated = mutated_body(frame, random)
            if waits_long(mutated):
                continue
            outcome = world.compare_frame(api, version, mutated)
            found[outcome if isinstance(outcome, str) else "answered"] += 1
            unknown = [] if isinstance(outcome, str) else [one for one in outcome if known(one, known_differences) is None]
            assert not unknown, (mutated, [difference for _, difference in unknown])

    ask()
    return found


def waits_long(frame: bytes) -> bool:
    """Whether it is a fetch that waits for records."""
    try:
        request = read_request(frame[4:])
    except InvalidRequest:
        return False
    return isinstance(request, Request) and getattr(request.message, "max_wait_ms", 0) > 100


def compare_any(world: World, api: Api, versions: range, known_differences: tuple[KnownDifference, ...]) -> None:
    """Any requests of an API: the answers differ in nothing that is not known. EACH says how many."""
    values = world.facts.values() | of_groups()
    asked = st.sampled_from(versions).flatmap(
        lambda version: st.tuples(st.just(version), any_message(api.request, version, values))
    )
    checks = list(HealthCheck)
    how = settings(max_examples=EACH, derandomize=True, deadline=None, database=None, suppress_health_check=checks)

    @settings(how, phases=[Phase.generate, Phase.shrink])
    @given(asked)
    def ask(asked: tuple[int, Any]) -> None:
        unknown = [one for one in world.compare(api, *asked) if known(one, known_differences) is None]
        assert not unknown, [difference for _, difference in unknown]

    ask()


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
