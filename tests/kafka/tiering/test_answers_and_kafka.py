"""The same requests to a broker and to our endpoint on a copy of its log directory: the answers are the same.

Hypothesis makes the requests of the fields of their classes. COMPARED_REQUESTS says how many of each API; a night takes 20,000.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from any_requests import Facts, any_message
from asked_by_wire import Wire
from asked_endpoint import Endpoint
from compared_answers import Difference, differences
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kafka_judge import oracle
from known_differences import KNOWN_DIFFERENCES, Compared
from known_topics import know
from odd_logs import odd_logs
from served_endpoint import served

from local_log.formats.filenames import CLUSTER_METADATA_TOPIC, HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT
from local_log.formats.list_offsets import LATEST
from tiering.endpoint.protocol.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    FETCH,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    Api,
)
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest

EACH = int(os.environ.get("COMPARED_REQUESTS", "40"))
COMPARED = (
    *(FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, OFFSET_FOR_LEADER_EPOCH),
    *(DESCRIBE_CONFIGS, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS),
)
FIRST_OF_KAFKA_4 = {FETCH.key: 4, LIST_OFFSETS.key: 1}
SETTINGS = {
    "log_retention_ms": "-1",
    "auto_create_topics_enable": "false",
    "replica_high_watermark_checkpoint_interval_ms": "200",
}
pytestmark = pytest.mark.slow


@dataclass
class Both:
    """A broker and our endpoint."""

    facts: Facts
    theirs: Wire
    ours: Wire

    def compare(self, api: Api, version: int, request: object) -> list[tuple[Compared, Difference]]:
        """What differs in the two answers, or that one has closed the connection."""
        answers = self.theirs.ask(api, version, request), self.ours.ask(api, version, request)
        compared = Compared(api, version, request, *answers, self.facts.bases)
        return [(compared, difference) for difference in differences(*answers)]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("broker")
    know(odd_logs(folder / "data"))
    with ExitStack() as stack:
        theirs = Wire(stack.enter_context(real_kafka.broker(folder, **SETTINGS)))
        stack.callback(theirs.close)
        wait_for_leaders(theirs, folder / "data")
        copy = Path(shutil.copytree(folder / "data", folder / "copy", ignore=shutil.ignore_patterns("*.tmp")))
        host, port = stack.enter_context(served(Endpoint(copy, None)))
        ours = Wire(f"{host}:{port}")
        stack.callback(ours.close)
        ours.ask(METADATA, 12, MetadataRequest(topics=None))  # as each client does before it asks by id
        yield Both(Facts.of(copy), theirs, ours)


def wait_for_leaders(broker: Wire, data: Path) -> None:
    """Until the broker leads every partition, and has written down each leader epoch and high watermark."""
    folders = {path.parent for path in data.glob("*/partition.metadata")} - {data / f"{CLUSTER_METADATA_TOPIC}-0"}
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if sum(1 for folder in folders if is_written(broker, folder)) == len(folders):
            return
        time.sleep(0.05)
    raise AssertionError("the broker does not lead all partitions")


def is_written(broker: Wire, folder: Path) -> bool:
    topic, _, number = folder.name.rpartition("-")
    latest = ListOffsetsRequest(-1, topics=(ListOffsetsTopic(topic, (ListOffsetsPartition(int(number), timestamp=LATEST),)),))
    found = broker.ask(LIST_OFFSETS, 7, latest).topics[0].partitions[0]
    epochs = (folder / LEADER_EPOCH_CHECKPOINT).read_text().splitlines()
    high_watermarks = (folder.parent / HIGH_WATERMARK_CHECKPOINT).read_text().splitlines()
    is_led = not found.error_code and epochs[-1].startswith(f"{found.leader_epoch} ")
    return is_led and f"{topic} {number} {found.offset}" in high_watermarks


def known(found: tuple[Compared, Difference]) -> str | None:
    """Which of the differences that we know of it is."""
    return next((one.what for one in KNOWN_DIFFERENCES if one.holds(*found)), None)


@oracle
@pytest.mark.parametrize("api", COMPARED, ids=lambda api: api.name)
def test_any_request_is_answered_as_by_a_broker(both: Both, api: Api) -> None:
    values = both.facts.values()
    versions = st.integers(FIRST_OF_KAFKA_4.get(api.key, api.first), api.last)
    requests = versions.flatmap(lambda version: st.tuples(st.just(version), any_message(api.request, version, values)))

    @settings(
        max_examples=EACH,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(requests)
    def ask(asked: tuple[int, Any]) -> None:
        unknown = [one for one in both.compare(api, *asked) if known(one) is None]
        assert [difference for _, difference in unknown] == []

    ask()


@oracle
@pytest.mark.parametrize("difference", KNOWN_DIFFERENCES, ids=lambda difference: difference.what)
def test_each_difference_that_is_listed_occurs(both: Both, difference: Any) -> None:
    assert difference.what in map(known, both.compare(*difference.shown_by))
