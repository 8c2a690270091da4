"""The endpoint's series, the beans that they stand for, and what it counts for them."""

import re
import urllib.request
from collections.abc import Callable
from operator import attrgetter

import pytest
from asked_endpoint import Endpoint
from prometheus_client.parser import text_string_to_metric_families
from served_endpoint import served
from tiered_worlds import World

from remote.store.instrumented import Counted
from tiering.endpoint.metrics import SAMPLES_MAX, ApiMetrics, EndpointMetrics, RequestTimes
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.protocol.api_keys import FETCH, JOIN_GROUP, METADATA
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.server_status import ServerStatus
from tiering.endpoint.settings import read_settings
from tiering.metrics.endpoint_pages import SILENT_S_MAX, healthz, readyz, serving_pages
from tiering.metrics.endpoint_series import (
    BYTES_OUT,
    ERRORS,
    FAILED_FETCHES,
    FETCHES,
    OF_ENDPOINT,
    REQUESTS,
    SESSIONS,
    TOTAL_TIME,
)
from tiering.metrics.endpoint_values import EndpointView, endpoint_values
from tiering.metrics.exposition import exposition

STATUS = ServerStatus(3, 4096, 100.0, is_stopping=False)


def view(endpoint: Endpoint, status: ServerStatus = STATUS) -> EndpointView:
    counted = {"get": Counted(5, 1, 500, 0.5), "upload": Counted(3, 2, 900, 1.5)}
    context, started_ms = endpoint.context, 1_700_000_000_000
    return EndpointView(context.metrics, endpoint.sessions, status, SocketServerConfig(), started_ms, counted, context.groups)


def test_names_are_what_the_jmx_exporter_s_rules_make_of_the_beans() -> None:
    assert len({series.name for series in OF_ENDPOINT}) == len(OF_ENDPOINT)
    pattern = re.compile(r"kafka\.([\w.]+):type=([\w-]+),name=([\w-]+?)(PerSec)?((?:,\w+=…)*)$")
    for series in OF_ENDPOINT:
        assert re.fullmatch(r"[a-z_]+", series.name)
        assert series.help.endswith(".")
        if series.bean:
            found = pattern.match(series.bean)
            assert found, series.bean
            words = re.sub(r"[-.]", "_", f"kafka_{found[1]}_{found[2]}_{found[3]}".lower())
            name = words + ("_total" if found[4] else "")
            assert series.name == name
            assert tuple(re.findall(r",(\w+)=", found[5])) == tuple(label for label in series.labels if label != "quantile")


def test_quantiles_are_of_the_last_values() -> None:
    api, total_ms = ApiMetrics(), attrgetter("total_ms")
    assert api.quantiles(total_ms, 0.5, 0.99) == [0.0, 0.0]
    for value in range(1, 101):
        api.add(1, RequestTimes(0, value, 0))
    assert api.quantiles(total_ms, 0.5, 0.95, 0.99, 0.999) == [50, 95, 99, 100]
    for _ in range(SAMPLES_MAX):
        api.add(1, RequestTimes(0, 7, 0))
    assert api.quantiles(total_ms, 0.001, 0.999) == [7, 7]


def test_requests_are_counted_by_api_and_version_and_what_a_client_makes_up_is_not() -> None:
    metrics = EndpointMetrics()
    frame = write_request(RequestHeader(METADATA, 12, 1, "me"), MetadataRequest())[4:]
    for wrong in (b"", b"\0\3\0", b"\0\3\0\x63" + frame[4:], b"\x7f\0\0\0" + frame[4:]):
        assert metrics.begun(wrong, 1.0) is None
    for began_s in (1.0, 2.0):
        asked = metrics.begun(frame, began_s)
        assert asked is not None
        metrics.sent(asked, began_s + 0.25, began_s + 0.5)
    of_api = metrics.apis["Metadata"]
    assert of_api.requests == {12: 2}
    assert of_api.quantiles(attrgetter("size"), 0.5) == [len(frame)]
    assert of_api.quantiles(attrgetter("total_ms"), 0.99) == [500.0]
    assert of_api.quantiles(attrgetter("send_ms"), 0.99) == [250.0]


def test_fetches_are_counted_by_topic(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    size = sum(map(len, endpoint.fetch("g-txn", 0).records or ()))
    endpoint.fetch("g-txn", 1 << 40)
    endpoint.fetch("nowhere", 0)
    waits = FetchTopic("g-tiny", partitions=(FetchPartition(0, fetch_offset=1, partition_max_bytes=1 << 20),))
    assert endpoint.ask(FETCH, 11, FetchRequest(max_wait_ms=500, min_bytes=1, topics=(waits,))) is None
    values = endpoint_values(view(endpoint))
    assert values[BYTES_OUT] == {("g-txn",): size}
    assert values[FETCHES] == {("g-txn",): 2}
    assert values[FAILED_FETCHES] == {("g-txn",): 0}


def test_errors_are_counted_by_api_wherever_they_are_in_an_answer(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    endpoint.fetch("g-txn", 0)
    assert endpoint_values(view(endpoint))[ERRORS] == {}
    endpoint.fetch("g-txn", 1 << 40)
    endpoint.fetch("nowhere", 0)
    for name in ("nowhere", "elsewhere"):
        endpoint.ask(METADATA, 12, MetadataRequest(topics=(MetadataRequestTopic(name=name),)))
    joined = endpoint.ask(JOIN_GROUP, 9, JoinGroupRequest("readers", session_timeout_ms=1, protocol_type="consumer"))
    assert joined.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert endpoint_values(view(endpoint))[ERRORS] == {
        ("Fetch", "OFFSET_OUT_OF_RANGE"): 1,
        ("Fetch", "UNKNOWN_TOPIC_OR_PARTITION"): 1,
        ("Metadata", "UNKNOWN_TOPIC_OR_PARTITION"): 2,
        ("JoinGroup", "INVALID_SESSION_TIMEOUT"): 1,
    }


def test_every_series_has_a_value_and_prometheus_reads_them(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    endpoint.ask(FETCH, 12, FetchRequest(topics=(endpoint.topic("g-txn", 12, FetchPartition(0, partition_max_bytes=100)),)))
    asked = endpoint.context.metrics.begun(b"\0\1\0\x0c", 1.0)
    assert asked is not None
    endpoint.context.metrics.sent(asked, 1.5, 2.0)
    endpoint.ask(FETCH, 12, FetchRequest(session_epoch=0))
    endpoint.fetch("nowhere", 0)
    endpoint.context.metrics.denied.add("READ", "TOPIC")
    found = endpoint_values(view(endpoint))
    assert set(found) == set(OF_ENDPOINT)
    assert {series for series, samples in found.items() if not samples} == set()
    assert all(len(labels) == len(series.labels) for series, samples in found.items() for labels in samples)
    assert found[SESSIONS] == {(): 1}
    assert found[TOTAL_TIME]["Fetch", "0.99"] == 1000.0
    text = exposition(lambda: endpoint_values(view(endpoint)))().decode()
    read = {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples if not s.labels}
    assert read["kafka_server_socket_server_metrics_connection_count"] == 3
    assert read["kafka_server_brokertopicmetrics_remotefetchbytes_total"] == 500


def test_the_server_counts_what_it_answers(world: World) -> None:
    import socket

    endpoint = Endpoint(world.folders["local alone"], None)
    with served(endpoint) as address, socket.create_connection(address) as client:
        for _ in range(3):
            client.sendall(write_request(RequestHeader(METADATA, 1, 99, None), MetadataRequest(topics=())))
            assert client.recv(1 << 16)
    assert endpoint_values(view(endpoint))[REQUESTS] == {("Metadata", "1"): 3}


@pytest.fixture
def pages(world: World) -> Callable[..., tuple[int, bytes]]:
    endpoint = Endpoint(world.folders["local alone"], None)

    def asked(path: str, host: str | None = None, status: ServerStatus = STATUS) -> tuple[int, bytes]:
        settings = read_settings(["endpoint.http.address=127.0.0.1:0", "endpoint.http.names=gateway.test"])
        with serving_pages(settings, lambda: view(endpoint, status), dict) as address:
            headers = {} if host is None else {"Host": host}
            try:
                with urllib.request.urlopen(urllib.request.Request(f"http://{address}{path}", headers=headers)) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as e:
                return e.code, e.read()

    return asked


def test_pages_are_answered_to_who_knows_a_name_of_the_host(pages: Callable[..., tuple[int, bytes]]) -> None:
    code, body = pages("/metrics")
    assert (code, b"kafka_tiering_endpoint_start_time_seconds 1.7e+09" in body) == (200, True)
    assert pages("/readyz", "gateway.test:9328") == (200, b"running\n")
    assert pages("/metrics", "evil.test") == (
        421,
        b"this is not a name of this host; add it to endpoint.http.names, or use its address\n",
    )


def test_without_an_address_there_are_no_pages(world: World) -> None:
    with serving_pages(read_settings([]), lambda: view(Endpoint(world.folders["local alone"], None)), dict) as address:
        assert address == ""


def test_an_endpoint_lives_while_its_loop_moves_and_is_ready_while_it_serves() -> None:
    before, stopping = ServerStatus(0, 0, 0, is_stopping=False), ServerStatus(0, 0, 100.0, is_stopping=True)
    later = 100.0 + SILENT_S_MAX + 1
    assert [healthz(status, later).status for status in (STATUS, before, stopping)] == [503, 200, 200]
    assert healthz(STATUS, 101.0).status == 200
    assert [readyz(status).status for status in (STATUS, before, stopping)] == [200, 503, 503]
