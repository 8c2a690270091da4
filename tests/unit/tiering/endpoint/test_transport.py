"""Answers from files by sockets: mapped, by sendfile where that cannot be or they are large, and never more than the file has."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_log.errors import Conflict
from local_log.file_range import FileRange, OpenedFile
from local_log.os_disk import OsDisk
from remote.store.folder.store import FolderStore
from tiering.endpoint.acceptor import Acceptor
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.send import Send
from tiering.endpoint.transport import MAPPED_BYTES_MAX, SENDFILE_BUFFER_BYTES, PlaintextTransport

DATA = bytes(range(251)) * 400


class Source:
    """Says that a file is unchanged, so many times."""

    def __init__(self, times: int = 1 << 30) -> None:
        self.left = times

    def is_unchanged(self, seen: object) -> bool:
        self.left -= 1
        return self.left >= 0


@pytest.fixture(params=["log directory", "archive"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> OpenedFile:
    (tmp_path / "file").write_bytes(DATA)
    if request.param == "log directory":
        return OsDisk().open(str(tmp_path / "file"))
    return FolderStore(str(tmp_path)).file_opener("file")()


@pytest.fixture
def ends() -> Iterator[tuple[PlaintextTransport, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        ours.setblocking(False)
        yield PlaintextTransport(ours), theirs


def sent(send: Send, by: PlaintextTransport, to: socket.socket, bytes_max: int = 1 << 20) -> bytes:
    """What arrives, if it is read whenever the socket is full."""
    found = received_while(send, by, to, bytes_max)
    by.socket.shutdown(socket.SHUT_WR)
    while more := to.recv(1 << 20):
        found += more
    return found


def received_while(send: Send, by: PlaintextTransport, to: socket.socket, bytes_max: int = 1 << 20) -> bytes:
    """What arrives until all is sent."""
    found = b""
    while send.left:
        try:
            send.advance(by.send(send, bytes_max))
        except BlockingIOError:
            found += to.recv(1 << 20)
    return found


def unmapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are on a file system that maps none."""
    for module in ("local_log.open_files", "remote.store.folder.store"):
        monkeypatch.setattr(f"{module}.mapping_of", lambda descriptor, end, known: None)


@pytest.mark.parametrize("is_mapped", [True, False])
@pytest.mark.parametrize("bytes_max", [1 << 20, 7_000])
def test_all_of_an_answer_arrives(
    file: OpenedFile,
    ends: tuple[PlaintextTransport, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    is_mapped: bool,
    bytes_max: int,
) -> None:
    if is_mapped:
        monkeypatch.setattr("tiering.endpoint.transport.os.sendfile", None)  # it is not called
    else:
        unmapped(monkeypatch)
    ranges = FileRange(file, 5, 60_000, Source(), None), FileRange(file, 60_005, 40_395, Source(), None)
    assert sent(Send([b"head", *ranges, b"tail"]), *ends, bytes_max) == b"head" + DATA[5:] + b"tail"


def test_an_answer_that_takes_many_calls_is_sent_without_being_copied(
    tmp_path: Path, ends: tuple[PlaintextTransport, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bytes(range(251)) * (MAPPED_BYTES_MAX // 251)
    (tmp_path / "large").write_bytes(whole)
    large = FileRange(OsDisk().open(str(tmp_path / "large")), 0, len(whole), Source(), None)
    monkeypatch.setattr(FileRange, "mapped", None)  # it is not called, nor when little is left
    answer = Send([b"head".ljust(MAPPED_BYTES_MAX - len(whole) + 1), large])
    assert sent(answer, *ends).endswith(whole)


def test_a_socket_has_less_room_only_for_large_answers_from_files(
    file: OpenedFile, tmp_path: Path, ends: tuple[PlaintextTransport, socket.socket]
) -> None:
    transport, _ = ends
    transport.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * SENDFILE_BUFFER_BYTES)
    (tmp_path / "large").write_bytes(bytes(MAPPED_BYTES_MAX + 1))
    large = FileRange(OsDisk().open(str(tmp_path / "large")), 0, MAPPED_BYTES_MAX + 1, Source(), None)
    small = FileRange(file, 0, len(DATA), Source(), None)

    def room_after(answer: Send) -> int:
        received_while(answer, *ends)
        return transport.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2

    answers = [large], [b"head", large], [small], [large], [bytes(MAPPED_BYTES_MAX + 1)], [bytes(40_000)]
    half, whole = SENDFILE_BUFFER_BYTES, 2 * SENDFILE_BUFFER_BYTES
    assert [room_after(Send([*parts])) for parts in answers] == [half, half, whole, half, whole, whole]


def test_a_file_that_has_become_longer_is_mapped_to_its_new_end(file: OpenedFile, tmp_path: Path) -> None:
    first = file.mapped(10, 20)
    assert file.mapped(0, len(DATA) + 3) is None
    with (tmp_path / "file").open("ab") as end:
        end.write(b"new")
    found = file.mapped(100_390, len(DATA) + 3)
    assert found is not None
    assert bytes(found) == DATA[100_390:] + b"new"
    assert first is not None
    assert bytes(first) == DATA[10:20]


def test_nothing_of_an_empty_file_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert OsDisk().open(str(tmp_path / "file")).mapped(0, 1) is None


def test_a_file_that_was_cut_under_its_mapping_ends_the_answer(
    file: OpenedFile, ends: tuple[PlaintextTransport, socket.socket], tmp_path: Path
) -> None:
    assert file.mapped(0, len(DATA)) is not None
    os.truncate(tmp_path / "file", 0)
    with pytest.raises(EOFError, match="ends before position 0: it was truncated meanwhile"):
        ends[0].send(Send([FileRange(file, 0, len(DATA), Source(), None)]), 1 << 20)


@pytest.mark.parametrize("times", [0, 1])
def test_a_log_that_was_truncated_before_or_after_its_bytes_were_taken_is_told(
    file: OpenedFile, ends: tuple[PlaintextTransport, socket.socket], times: int
) -> None:
    send = Send([FileRange(file, 0, 40_000, Source(times), None)])
    with pytest.raises(Conflict, match="the log has been truncated meanwhile"):
        sent(send, *ends)


class Loop:
    """Has one reader, and no time."""

    def add_reader(self, descriptor: int, accept: object) -> None:
        self.accept = accept

    def remove_reader(self, descriptor: int) -> None:
        pass


@pytest.mark.parametrize("size", [30_000, -1])
def test_connections_have_the_send_buffer_that_is_set(size: int) -> None:
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        listener.setblocking(False)
        loop = Loop()
        acceptor = Acceptor(loop, listener, lambda one, address: taken.append(one), print, size)  # type: ignore[arg-type]
        acceptor.start()
        loop.accept()  # type: ignore[operator]
        with taken[0] as ours:
            found, others = (one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for one in (ours, client))
    assert found == 2 * size if size >= 0 else found > 0 and others > 0
    assert SocketServerConfig().send_buffer_bytes == 512 << 10
