"""What an endpoint leaves behind: when it ends before it has begun to serve, and when a store does not answer at its end."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest
from archive_fakes import Door
from asked_by_wire import Wire
from click.testing import CliRunner
from made_archive import made

from local_log.errors import Invalid, Unreadable
from remote.keys import BROKERS
from tiering.cli import main
from tiering.command.stop_signals import stopped_by_signals
from tiering.endpoint.broker_server import BrokerServer, BrokerServerConfig, broker_server
from tiering.endpoint.protocol.api_keys import METADATA
from tiering.endpoint.protocol.messages.metadata import MetadataRequest
from tiering.endpoint.reports import PER_MINUTE_MAX
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.settings import DEFAULTS, HTTP_ADDRESS
from tiering.machine import open_store

T = TypeVar("T")
LOADED_LATER = {"numba", "boto3", "fsspec", "prometheus_client", "pyarrow.compute", "local_log.engine.manager", "tiering.agent"}
"""What takes its time to load, and what an endpoint that reads needs for its first fetch, or not at all."""


def config(archive: Path, port: int = 0) -> BrokerServerConfig:
    """Of a broker that registers in an archive of one topic."""
    made(open_store(str(archive)), [[range(3)]])
    return BrokerServerConfig(DEFAULTS, SecurityProtocol.PLAINTEXT, "127.0.0.1", port, archive_url=str(archive), register=True)


def registrations(archive: Path) -> list[str]:
    return [meta.key for meta in open_store(str(archive)).list(BROKERS)]


def test_an_endpoint_that_reads_is_ready_before_it_loads_what_it_does_not_need_for_that() -> None:
    code = "import sys, tiering.endpoint.broker_server; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "tiering.endpoint.server" in loaded
    assert not LOADED_LATER.intersection(loaded)


def test_a_broker_that_fails_before_it_serves_tells_the_others_that_it_has_left(tmp_path: Path) -> None:
    def fails() -> None:
        with broker_server(config(tmp_path), print) as server:
            opened.append(server)
            assert len(registrations(tmp_path)) == 1
            raise Unreadable("the pages' address is taken")

    opened: list[BrokerServer] = []
    with pytest.raises(Unreadable, match="is taken"):
        fails()
    [server] = opened
    assert server.topics == 1
    assert registrations(tmp_path) == []
    assert server.listener.fileno() < 0


def test_a_broker_whose_address_is_taken_registers_nowhere(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Invalid, match=f"cannot listen on 127.0.0.1:{port}"), broker_server(config(tmp_path, port), print):
            pass
    assert registrations(tmp_path) == []


def test_a_signal_that_comes_when_it_has_ended_by_itself_breaks_off_nothing_that_is_closed(tmp_path: Path) -> None:
    closed = list[str]()
    with broker_server(config(tmp_path), print) as server, stopped_by_signals(server.stop):
        server.stop()
        server.serve()
        os.kill(os.getpid(), signal.SIGTERM)
        closed.append("what comes after it")
    assert (closed, registrations(tmp_path)) == (["what comes after it"], [])


def test_who_is_closed_and_who_is_denied_hide_no_other_message(tmp_path: Path) -> None:
    said = list[str]()
    with broker_server(config(tmp_path), said.append) as server:
        for number in range(2 * PER_MINUTE_MAX):
            server.server.report(f"closed the connection of {number}")
            server.context.audit(f"denied {number}")
        server.context.report("the disk is full")
    assert said[-1] == "the disk is full"
    assert len(said) == 2 * PER_MINUTE_MAX + 1


class Silent(Door):
    """Answers nothing until it is let go."""

    is_asked, may_go = threading.Event(), threading.Event()

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        self.is_asked.set()
        assert self.may_go.wait(60)
        return call()


def test_a_store_that_does_not_answer_keeps_an_endpoint_from_its_end_for_so_long_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiering.endpoint.server.DRAIN_S_MAX", 0.2)
    monkeypatch.setattr("tiering.endpoint.ending.END_MS_MAX", 200)
    said, answers = list[str](), list[object]()
    with broker_server(replace(config(tmp_path), offsets_dir=str(tmp_path / "offsets")), said.append) as server:
        logs, store = server.context.logs, Silent(open_store(str(tmp_path)))
        logs.tiers = replace(logs.tiers, store=store)

        def ask() -> None:
            answers.append(Wire("{}:{}".format(*server.address)).ask(METADATA, 9, MetadataRequest(topics=None)))

        def stop() -> None:
            assert store.is_asked.wait(60)
            server.server._loop.call_soon_threadsafe(server.server.stop)

        others = [threading.Thread(target=act) for act in (ask, stop)]
        for thread in others:
            thread.start()
        server.serve()
    assert server.hung == ["request"]
    store.may_go.set()
    for thread in others:
        thread.join()
    assert (answers, said) == ([None], [])
    with broker_server(replace(config(tmp_path / "other"), offsets_dir=str(tmp_path / "offsets")), said.append) as server:
        pass  # the directory of offsets was closed
    assert server.hung == []


@pytest.mark.parametrize(("hung", "codes"), [(["request"], [0]), ([], [])])
def test_the_process_does_not_wait_for_threads_that_hang(
    monkeypatch: pytest.MonkeyPatch, hung: list[str], codes: list[int]
) -> None:
    @contextmanager
    def opened(*_: object) -> Iterator[object]:
        settings = SimpleNamespace(settings={HTTP_ADDRESS: None})
        yield SimpleNamespace(address=("", 1), context=settings, topics=0, serve=lambda: None, stop=lambda: None, hung=hung)

    ended = list[int]()
    monkeypatch.setattr("tiering.endpoint.broker_server.broker_server", opened)
    monkeypatch.setattr(os, "_exit", ended.append)
    done = CliRunner().invoke(main, ["serve", "--archive", "none", "--listen", "127.0.0.1:0"])
    assert done.output.endswith("tiering: stopped\n"), done.output
    assert ended == codes
