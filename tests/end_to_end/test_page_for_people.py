"""The page for people of an agent and of an endpoint, in a browser: what it shows, and what it does not let happen."""

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from agent_views import HOUR_MS, NOW_MS, agent_view, partition
from browser import Browser, chromium, needs_chromium
from logs_at_work import batch_of
from transacting_endpoint import TransactingEndpoint

from tiering.agent.controls import Controls
from tiering.agent.http.guard import Guard
from tiering.agent.http.overview import overview_pages
from tiering.agent.http.server import HttpServer, Page
from tiering.agent.pages import pages_of
from tiering.agent.view import AgentView, ErrorRecord
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.protocol.api_keys import OFFSET_COMMIT
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.server_status import ConnectedClient, ServerStatus
from tiering.metrics.endpoint_overview import EndpointOverview
from tiering.metrics.open_transactions import LATE_MS_MAX

pytestmark = [needs_chromium, pytest.mark.slow]
TOKEN = "a-token-that-nobody-guesses"  # it opens nothing
ROWS = "#partitions tbody tr"
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> \u202egnp.exe"


@pytest.fixture(scope="module")
def page() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@dataclass
class Agent:
    """What an agent's pages are made of."""

    view: AgentView
    controls: Controls
    server: HttpServer

    @property
    def url(self) -> str:
        return f"http://{self.server.address}/"


@contextmanager
def served(view: AgentView, guard: Guard = Guard(), address: str = "127.0.0.1:0") -> Iterator[Agent]:  # noqa: B008  # a value
    controls = Controls()
    pages = pages_of(lambda: replace(one.view, is_paused=controls.is_paused), controls, lambda: Page(b""))
    server = HttpServer(address, pages, guard)
    one = Agent(view, controls, server)
    server.start()
    try:
        yield one
    finally:
        server.close()


def test_what_needs_attention_is_told_and_comes_first(page: Browser) -> None:
    lost = partition("payments", (0, 400), (600, 1000), [], lost=200)
    damaged = partition("orders", error="00000000000000000700.log has a batch with a wrong checksum")
    fine = [partition(f"fine-{at}") for at in range(3)]
    view = replace(agent_view(*fine, damaged, lost), store=ErrorRecord("Unavailable", "no answer", NOW_MS - 2 * HOUR_MS))
    with served(view) as agent:
        page.open(agent.url)
        notes = page.shows("#agent-notes", "has not responded for 2 h")
        assert "200 offsets were lost before they were archived" in notes
        assert page.text("#state") == "failing"
        assert page.driver.title.startswith("failing")
        assert page.texts(f"{ROWS} th") == ["payments-0", "orders-0", "fine-0-0", "fine-1-0", "fine-2-0"]
        assert "200 offsets lost, known since" in page.text(f"{ROWS}:nth-child(1) td.text")
        assert "wrong checksum" in page.text(f"{ROWS}:nth-child(2) td.text")
        tiles = dict(zip(page.texts("#agent dt"), page.texts("#agent dd"), strict=True))
        assert tiles["unprotected"] == "800 offsets, 20 KiB\nwould be lost with the disk; the oldest is 1 h old"
        assert tiles["lag"] == "0 segments, 0 bytes\nall closed segments are archived"
        assert page.problems() == []


def test_a_bar_shows_both_tiers_and_says_them_to_a_screen_reader(page: Browser) -> None:
    with served(agent_view(partition("a", (0, 400), (600, 1000), [(100, 200)]), partition("b", None, (0, 10)))) as agent:
        page.open(agent.url)
        page.until(lambda shown: shown.count(ROWS) == 2)
        bar = page.find(f"{ROWS}:nth-child(1) svg")
        assert bar.aria_role in ("img", "image")
        assert bar.accessible_name == (
            "Offsets 0 to 999. Archive: 0 to 99, 200 to 399. Local log: 600 to 999. In neither: 100 to 199, 400 to 599"
        )
        drawn = page.driver.execute_script(
            "return [...arguments[0].children].map(r => [r.className.baseVal, +r.getAttribute('x'), +r.getAttribute('width')])",
            bar,
        )
        assert drawn == [
            ["archive", 0, 100], ["archive", 200, 200], ["alone", 600, 400], ["missing", 100, 100], ["missing", 400, 200],
        ]  # fmt: skip
        assert page.find(f"{ROWS}:nth-child(2) svg").accessible_name == "Offsets 0 to 9. Archive: none. Local log: 0 to 9"
        assert page.find("#partitions table").aria_role == "table"
        assert page.find("#partitions-filter").accessible_name == "Filter"
        assert page.find("#partitions").accessible_name.startswith("Partitions")


def test_of_10000_partitions_a_hundred_are_shown_and_others_are_found_by_name(page: Browser) -> None:
    many = [partition(f"topic-{at:05}") for at in range(9_999)]
    with served(agent_view(*many, partition("zuletzt", error="broken"))) as agent:
        page.open(agent.url)
        page.until(lambda shown: shown.count(ROWS) == 100)
        assert page.text(f"{ROWS} th") == "zuletzt-0"
        assert page.text("#partitions > button") == "and 9,900 more"
        page.find("#partitions > button").click()
        assert page.count(ROWS) == 200
        page.find("#partitions-filter").send_keys("TOPIC-0123")
        assert page.texts(f"{ROWS} th") == [f"topic-0123{at}-0" for at in range(10)]
        assert page.text("#partitions caption") == "10 of 10,000 have “topic-0123” in their name"


def test_an_endpoint_s_groups_transactions_topics_and_clients_are_shown(page: Browser) -> None:
    own = TransactingEndpoint()
    for _ in range(4):
        own.produce(batch_of("a", "b", "c"))
    committed = OffsetCommitRequestTopic("orders", partitions=(OffsetCommitRequestPartition(0, 2, committed_metadata=""),))
    for group in ("billing", HOSTILE):
        own.ask(OFFSET_COMMIT, 8, OffsetCommitRequest(group, topics=(committed,)))
    began_ms = own.clock.now_ms()
    left = batch_of("left", offset=12, producer=4_711, epoch=0, sequence=0, transactional=True, time=began_ms)
    own.log().append_as_follower(left, 0)
    clients = (ConnectedClient("app", "192.0.2.1", "User:alice"),) * 3

    def overview() -> dict[str, Any]:
        own.clock.now += LATE_MS_MAX + 30_000
        own.produce(batch_of("x" * 10_000))
        status = ServerStatus(3, 4096, 100.0, is_stopping=False)
        return {"endpoint": EndpointOverview(own.context, status, SocketServerConfig(), clients, began_ms).row()}

    server = HttpServer("127.0.0.1:0", overview_pages(overview))
    server.start()
    page.open(f"http://{server.address}/")
    page.shows("#endpoint-notes", "1 transaction hangs: consumers of committed records wait there.")
    group = page.texts("#groups tbody tr:nth-child(2) > *")
    assert group == ["billing", "Empty", "0", "12 records", "orders-0 by 12", "1 min ago"]
    assert page.text("#groups th[scope=row]") == HOSTILE.replace("\u202e", "\\u202e")
    why = "hangs: no transactional id has it; kafka-transactions abort ends it"
    assert page.texts("#transactions tbody tr > *") == ["none", why, "1 min", "orders-0", "4711"]
    assert page.texts("#clients tbody tr > *") == ["app", "192.0.2.1", "User:alice", "3"]
    assert page.texts("#sections a") == ["Consumer groups", "Open transactions", "Throughput by topic", "Clients"]
    assert page.texts("#topics tbody tr > *")[:3] == ["orders", "…", "…"], "not known before the second answer"
    page.choose("#every", "2")
    page.shows("#topics tbody", "/s")
    server.close()
    topic, read, written, records, *_ = page.texts("#topics tbody tr > *")
    assert (topic, read, records) == ("orders", "0 bytes/s", "0/s")
    assert 160 < int(written.removesuffix(" bytes/s")) < 180, "10 kB in a minute"
    assert not page.find("#pause").is_displayed()
    assert page.problems() == []


def test_texts_of_others_stay_texts(page: Browser) -> None:
    with served(agent_view(partition(HOSTILE, error=HOSTILE))) as agent:
        page.open(agent.url)
        assert HOSTILE.replace("\u202e", "\\u202e") in page.shows(f"{ROWS} td.text", "onerror")
        assert page.text(f"{ROWS} th") == HOSTILE.replace("\u202e", "\\u202e") + "-0"
        page.driver.execute_script(
            "try { document.body.insertAdjacentHTML('beforeend', '<b>in</b>') } catch (e) { document.body.dataset.why = e.name }"
        )
        assert page.find("body").get_attribute("data-why") == "TypeError", "trusted types"
        assert page.driver.title.startswith("running")
        with urllib.request.urlopen(agent.url) as answer:
            policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page.problems()


def test_it_is_paused_and_resumed_with_the_token(page: Browser) -> None:
    with served(agent_view(partition("a")), Guard(token=TOKEN)) as agent:
        page.open(agent.url)
        page.shows("#state", "running")
        page.find("#pause").click()
        page.shows("#said", "This agent asks for its token")
        page.find("#token").send_keys("wrong\n")
        page.shows("#said", "That is not the token")
        assert not agent.controls.is_paused
        page.find("#token").send_keys(f"{TOKEN}\n")
        page.shows("#state", "paused")
        assert agent.controls.is_paused
        page.shows("#agent-notes", "Paused: nothing is archived until it is resumed.")
        page.find("#pause").click()
        page.shows("#state", "running")
        assert not agent.controls.is_paused
        assert not page.find("#tokens").is_displayed()
    page.problems()  # the 401s


def test_it_says_when_nobody_answers_and_how_old_it_is(page: Browser) -> None:
    view = agent_view(partition("a"))
    with served(view) as agent:
        page.open(agent.url)
        page.shows("#state", "running")
        address = agent.server.address
    page.choose("#every", "2")
    assert f"Cannot reach {address}: no answer" in page.shows("#unreached", "may not be true any more")
    assert page.texts(f"{ROWS} th") == ["a-0"], "what was known stays"
    assert page.text("#age").startswith("as of ")
    assert page.driver.title.startswith("not reached")
    with served(view, address=address):
        page.until(lambda shown: not shown.find("#unreached").is_displayed())
        assert page.driver.title.startswith("running")
    page.problems()


@contextmanager
def proxied(url: str, prefix: str) -> Iterator[str]:
    """A proxy that serves `url` below a path."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(prefix):
                self.send_error(404)
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            headers["X-Forwarded-For"] = "192.0.2.1"
            below = url + self.path.removeprefix(prefix).lstrip("/")
            asked = urllib.request.Request(below, headers=headers, method=self.command)
            with urllib.request.urlopen(asked) as answer:
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.read())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("end", ["", "/"])
def test_below_a_path_of_a_proxy_it_works_too(page: Browser, end: str) -> None:
    with served(agent_view(partition("a")), Guard(token=TOKEN)) as agent, proxied(agent.url, "/kafka/agent") as url:
        page.open(url + end)
        page.until(lambda shown: shown.texts(f"{ROWS} th") == ["a-0"])
        page.driver.execute_script("token = arguments[0]", TOKEN)
        page.find("#pause").click()
        page.shows("#state", "paused")
        assert agent.controls.is_paused
    page.problems()
