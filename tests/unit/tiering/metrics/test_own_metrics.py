"""The metrics and pages of an endpoint on a log directory of its own: the endpoint's, its logs', and those of the agent in it."""

import json
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hand_made import batch, record
from prometheus_client.parser import text_string_to_metric_families

from local_log.formats.filenames import TopicPartition
from local_log.os_disk import OsDisk
from remote.store.instrumented import Counted
from tiering.agent.configured import addresses
from tiering.agent.http import client as http_client
from tiering.agent.own_dirs import OwnDirs, own_dirs
from tiering.config.load import load_config
from tiering.endpoint.broker_server import BrokerServer, BrokerServerConfig, broker_server
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.settings import SETTINGS, Settings
from tiering.metrics.endpoint_series import GROUPS, MIN_FREE_BYTES, OF_ENDPOINT, OF_OWN_LOGS, TRANSACTIONS, USABLE_BYTES
from tiering.metrics.own_pages import serving_own_pages
from tiering.metrics.own_values import OwnView, own_values
from tiering.metrics.series import (
    ALL,
    FETCH_BYTES,
    FETCH_ERRORS,
    FETCH_REQUESTS,
    LOG_END,
    LOG_SIZE,
    STORE_REQUESTS,
    TIER_TICK,
    UNFLUSHED,
)

ORDERS = TopicPartition("orders", 0)
SMALL = ("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1")
ASKED = ("endpoint.http.address=127.0.0.1:0", "endpoint.http.names=logs.test")


@contextmanager
def served(folder: Path, *overrides: str) -> Iterator[tuple[tuple[str, ...], BrokerServer, OwnDirs, tuple[str, ...]]]:
    """The addresses of its pages, what they are made of, and where `tiering status` asks."""
    own = (f"log.dirs={folder}/data", "own.log.dirs=true", f"agent.state.dir={folder}/state", *SMALL, *overrides)
    whole = load_config(None, {}, OsDisk(), own)
    url = whole.settings.archive_url
    settings = Settings({name: getattr(whole.settings, name.replace(".", "_")) for name in SETTINGS & whole.places.keys()})
    config = BrokerServerConfig(settings, SecurityProtocol.PLAINTEXT, "127.0.0.1", 0, archive_url=url)
    said = list[str]()
    with own_dirs(whole, {}, said.append) as dirs, broker_server(config, said.append, dirs.tier) as server:
        dirs.tier.create_topic("orders")
        dirs.tier.log(ORDERS).append_as_leader(batch(record(value=b"a"), record(value=b"b")), 0)
        with serving_own_pages(server, dirs, whole) as found:
            yield found, server, dirs, addresses(whole, {}) if url else ()


def page(address: str, path: str, host: str = "localhost") -> str:
    with urllib.request.urlopen(urllib.request.Request(f"http://{address}{path}", headers={"Host": host})) as answer:
        text: str = answer.read().decode()
        return text


def read(text: str) -> Mapping[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(sorted(s.labels.values()))): s.value for family in families for s in family.samples}


def test_one_page_has_the_metrics_of_the_endpoint_of_its_logs_and_of_the_agent_in_it(tmp_path: Path) -> None:
    with served(tmp_path, f"archive.url={tmp_path}/archive", *ASKED) as ((address,), server, dirs, _):
        assert dirs.service.tick()
        text = page(address, "/metrics", "logs.test")
        overview = json.loads(page(address, "/overview"))
        assert page(address, "/").startswith("<!doctype html>")
        assert set(own_values(OwnView.of(server, dirs))) == {*OF_ENDPOINT, *ALL, *OF_OWN_LOGS}
    assert (overview["agent"]["local_tier"]["state"], overview["endpoint"]["is_written"]) == ("running", True)
    told = read(text)
    of_orders = ("0", "orders")
    assert told[LOG_END.name, of_orders] == told[UNFLUSHED.name, of_orders] == 2
    assert told[LOG_SIZE.name, of_orders] == (tmp_path / "data" / "orders-0" / "00000000000000000000.log").stat().st_size
    assert told[TIER_TICK.name, ()] > told["kafka_tiering_agent_start_time_seconds", ()] > 0
    assert told[GROUPS.name, ("classic",)] == told[TRANSACTIONS.name, ("Ongoing",)] == 0
    assert told[MIN_FREE_BYTES.name, ()] == 128 << 20
    assert told[USABLE_BYTES.name, (f"{tmp_path}/data",)] > 0
    assert told["kafka_tiering_store_requests_total", ("put_if_absent",)] >= 1, "the archive was created"


def test_reads_of_the_store_by_the_agent_and_for_clients_are_counted_together(tmp_path: Path) -> None:
    with served(tmp_path, f"archive.url={tmp_path}/archive") as (_, server, dirs, _):
        view = replace(OwnView.of(server, dirs), counted={"get": Counted(2, 1, 30, 0.5), "list": Counted(9)})
        both = replace(view, endpoint=replace(view.endpoint, counted={"get": Counted(1, 1, 5), "get_range": Counted(4, 0, 7)}))
    found = own_values(both)
    assert (found[FETCH_REQUESTS], found[FETCH_BYTES], found[FETCH_ERRORS]) == ({(): 7}, {(): 42}, {(): 2})
    assert found[STORE_REQUESTS] == {("get",): 3, ("get_range",): 4, ("list",): 9}


def test_without_an_archive_the_page_has_the_logs_and_status_tells_them(tmp_path: Path) -> None:
    with served(tmp_path, *ASKED) as ((address,), server, dirs, _):
        found = own_values(OwnView.of(server, dirs))
        status = json.loads(page(address, "/status"))
        overview = json.loads(page(address, "/overview"))
    assert found[LOG_END]["orders", "0"] == 2
    assert "kafka_tiering_agent_start_time_seconds" not in {series.name for series in found}
    assert (status["state"], status["archive"], status["local_tier"]["logs"]) == ("running", None, 3)
    assert (list(overview), overview["endpoint"]["local_tier"]["logs"]) == (["endpoint"], 3)


def test_the_agent_in_it_is_found_and_paused_by_its_commands(tmp_path: Path) -> None:
    agents = ("agent.http.address=127.0.0.1:0", "agent.http.names=agent.test")
    with served(tmp_path, f"archive.url={tmp_path}/archive", *ASKED, *agents) as (found, _, dirs, asked):
        endpoint, agent = found
        assert asked == (endpoint, "127.0.0.1:0"), "where tiering status asks first, and what is set"
        assert http_client.ask(endpoint, "POST", "/pause") == {"state": "paused"}
        assert dirs.agent is not None
        assert dirs.agent.controls.is_paused
        assert http_client.ask(agent, "GET", "/status")["state"] == "paused"
        assert http_client.ask(agent, "POST", "/resume")["state"] != "paused"
        assert page(agent, "/healthz", "agent.test") == "ok\n"


def test_where_no_address_is_set_nothing_is_served(tmp_path: Path) -> None:
    with served(tmp_path, f"archive.url={tmp_path}/archive") as (found, *_):
        assert found == ()
