"""What an agent answers over HTTP, and whom it refuses."""

import http.client
import json
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest
from agents import World
from one_offload import TXN

from local_log.errors import Unavailable, Unreadable
from tiering.agent.controls import Controls
from tiering.agent.http import client as http_client
from tiering.agent.http.overview import overview_pages
from tiering.agent.http.server import CONNECTIONS_MAX, HttpServer, Page
from tiering.agent.pages import SILENT_MS_MAX, healthz, pages_of, readyz
from tiering.agent.view import AgentView, ErrorRecord
from tiering.local_tier.service import TierStatus

NOW_MS = 1_700_000_000_000
VIEW = AgentView(NOW_MS, NOW_MS, NOW_MS, ("/logs",), "file:///archive", has_looked=True)
FAILING = ErrorRecord("Unavailable", "no answer", NOW_MS)


@pytest.fixture
def served() -> Iterator[tuple[str, Controls]]:
    """The address of an agent that has archived something, and its controls."""
    world = World().has(TXN)
    agent, controls = world.agent()
    world.run(agent, controls, 1)
    controls.is_stopping = False
    server = HttpServer("127.0.0.1:0", pages_of(agent.view, controls, lambda: Page(b"some_metric 1\n")))
    server.start()
    yield server.address, controls
    server.close()


def answer(address: str, method: str, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*address.split(":"), timeout=10)
    try:
        connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_status_says_what_the_agent_knows(served: tuple[str, Controls]) -> None:
    status, body = answer(served[0], "GET", "/status")
    row = json.loads(body)
    assert status == 200
    assert (row["state"], row["archive"], row["log_dirs"]) == ("running", "memory://store", ["/logs"])
    (partition,) = row["partitions"]
    assert (partition["topic"], partition["partition"], partition["error"]) == ("g-txn", 0, partition["error"])
    assert partition["archived_segments"] > 5
    assert row == http_client.ask(served[0], "GET", "/status") | {"now_ms": row["now_ms"]}


def test_pause_and_resume_are_posted(served: tuple[str, Controls]) -> None:
    address, controls = served
    assert http_client.ask(address, "POST", "/pause") == {"state": "paused"}
    assert controls.is_paused
    assert http_client.ask(address, "POST", "/resume") == {"state": "running"}
    assert not controls.is_paused
    assert answer(address, "GET", "/pause")[0] == 405
    assert answer(address, "POST", "/status")[0] == 405


def test_a_web_site_in_a_browser_cannot_pause_it(served: tuple[str, Controls]) -> None:
    assert answer(served[0], "POST", "/pause", Origin="https://example.com")[0] == 403
    assert not served[1].is_paused


def test_what_the_page_for_people_asks_for_is_answered_again_for_a_moment(served: tuple[str, Controls]) -> None:
    status, first = answer(served[0], "GET", "/overview")
    row = json.loads(first)["agent"]
    assert (status, row["state"], row["archive"]) == (200, "running", "memory://store")
    assert dict(zip(row["partitions"]["columns"], row["partitions"]["rows"][0], strict=True))["topic"] == "g-txn"
    assert answer(served[0], "GET", "/overview") == (200, first), "also many browsers have it made once"
    assert answer(served[0], "GET", "/")[1].startswith(b"<!doctype html>")


def test_however_many_ask_for_what_does_not_come_others_are_answered() -> None:
    """As when a disk hangs: as many ask as there may be connections."""
    comes = Event()

    def overview() -> dict[str, object]:
        assert comes.wait(60)
        return {}

    server = HttpServer("127.0.0.1:0", {**overview_pages(overview), ("GET", "/healthz"): lambda: Page(b"alive")})
    server.start()
    asking: list[socket.socket] = []
    try:
        for _ in range(CONNECTIONS_MAX):
            asking.append(one := socket.create_connection(server.address.split(":"), timeout=10))  # type: ignore[arg-type]
            one.sendall(b"GET /overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
        *_, last = asking
        assert last.recv(100).startswith(b"HTTP/1.0 503"), "all but those who wait for a moment"
        assert answer(server.address, "GET", "/healthz") == (200, b"alive")
    finally:
        comes.set()
        for one in asking:
            one.close()
        server.close()


def test_who_hangs_up_before_the_answer_is_no_news(capfd: pytest.CaptureFixture[str]) -> None:
    asked, hung_up = Event(), Event()

    def slow() -> Page:
        asked.set()
        assert hung_up.wait(60)
        return Page(b"x" * (64 << 20))

    server = HttpServer("127.0.0.1:0", {("GET", "/slow"): slow, ("GET", "/bug"): lambda: Page(b"%d" % (1 // 0))})
    server.start()
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert asked.wait(60)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    hung_up.set()
    with pytest.raises(http.client.RemoteDisconnected):
        answer(server.address, "GET", "/bug")
    server.close()
    said = capfd.readouterr().err
    assert "ZeroDivisionError" in said
    assert "ConnectionReset" not in said
    assert "BrokenPipe" not in said


def test_other_paths_are_told_which_there_are(served: tuple[str, Controls]) -> None:
    status, body = answer(served[0], "GET", "/nothing")
    assert status == 404
    assert b"there are: /, /healthz, /metrics, /overview, /pause, /readyz, /resume, /status" in body
    assert answer(served[0], "GET", "/metrics?a=b") == (200, b"some_metric 1\n")
    assert answer(served[0], "HEAD", "/healthz") == (200, b"")


def test_an_address_that_is_taken_is_refused_with_what_to_do(served: tuple[str, Controls]) -> None:
    with pytest.raises(Unreadable, match=r"agent\.http\.address"):
        HttpServer(served[0], {})


def test_who_asks_where_no_agent_is_is_told_so(served: tuple[str, Controls]) -> None:
    with pytest.raises(Unavailable, match="404"):
        http_client.ask(served[0], "GET", "/nothing")
    with pytest.raises(Unavailable, match="no agent responds there"):
        http_client.ask(served[0], "GET", "/healthz")  # an answer, and no JSON
    with pytest.raises(Unavailable, match="no agent responds there"):
        http_client.ask("127.0.0.1:1", "GET", "/status")


def test_it_is_healthy_while_its_loop_moves() -> None:
    assert healthz(VIEW).status == 200
    recovering = replace(VIEW, now_ms=NOW_MS + 10 * SILENT_MS_MAX, local_tier=TierStatus(logs=9, logs_left=4))
    assert (healthz(recovering).status, healthz(recovering).body) == (200, b"opening logs, 4 left\n")
    assert healthz(replace(recovering, local_tier=TierStatus("running"))).status == 503
    assert healthz(replace(VIEW, now_ms=NOW_MS + SILENT_MS_MAX)).status == 200
    assert healthz(replace(VIEW, now_ms=NOW_MS + SILENT_MS_MAX + 1)).status == 503
    assert healthz(replace(VIEW, now_ms=NOW_MS + SILENT_MS_MAX + 1, is_stopping=True)).status == 200


def test_it_is_ready_while_it_can_do_its_work() -> None:
    assert readyz(VIEW).status == readyz(replace(VIEW, is_paused=True)).status == 200
    for broken in (replace(VIEW, has_looked=False), replace(VIEW, is_stopping=True), replace(VIEW, store=FAILING)):
        assert readyz(broken).status == 503
    told = replace(VIEW, store=FAILING)
    assert readyz(told).body == b"failing: no answer\n"
