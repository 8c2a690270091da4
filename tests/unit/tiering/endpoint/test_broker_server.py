"""What an endpoint leaves behind when it ends before it has begun to serve."""

import socket
from pathlib import Path

import pytest
from made_archive import made

from local_log.errors import Invalid, Unreadable
from remote.keys import BROKERS
from tiering.endpoint.broker_server import BrokerServer, BrokerServerConfig, broker_server
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.settings import DEFAULTS
from tiering.machine import open_store


def config(archive: Path, port: int = 0) -> BrokerServerConfig:
    """Of a broker that registers in an archive of one topic."""
    made(open_store(str(archive)), [[range(3)]])
    return BrokerServerConfig(DEFAULTS, SecurityProtocol.PLAINTEXT, "127.0.0.1", port, archive_url=str(archive), register=True)


def registrations(archive: Path) -> list[str]:
    return [meta.key for meta in open_store(str(archive)).list(BROKERS)]


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
