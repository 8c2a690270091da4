"""A turn of a long answer: it goes on while nobody else waits for the loop, and no longer."""

import asyncio
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tiering.endpoint import event_loop
from tiering.endpoint.event_loop import EventLoop, Turn, run, running_loop


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Ours, and the client's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def in_a_turn(ask: Callable[[EventLoop, Turn], None], of: socket.socket) -> None:
    """Calls `ask` with a turn of a loop that runs and waits for nothing else."""

    async def asked() -> None:
        loop = running_loop()
        ask(loop, loop.turn(of.fileno()))

    run(asked())


def fill(ours: socket.socket) -> None:
    with suppress(BlockingIOError):
        while ours.send(bytes(1 << 16)):
            pass


@pytest.fixture
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns that do not end by their time on a busy machine."""
    monkeypatch.setattr(event_loop, "TURN_S", 60)


@pytest.mark.usefixtures("_long")
def test_a_turn_goes_on_until_another_socket_is_ready(ends: tuple[socket.socket, socket.socket]) -> None:
    first, second = socket.socketpair()

    def ask(loop: EventLoop, turn: Turn) -> None:
        loop.add_reader(first, lambda: None)
        assert turn.goes_on()
        assert turn.goes_on_when_writable()
        second.send(b"a request")
        assert not turn.goes_on()
        assert not turn.goes_on_when_writable()
        loop.remove_reader(first)
        assert turn.goes_on()

    with first, second:
        in_a_turn(ask, ends[0])


@pytest.mark.usefixtures("_long")
def test_a_turn_waits_a_little_for_a_client_that_takes_what_was_sent(ends: tuple[socket.socket, socket.socket]) -> None:
    def ask(_: EventLoop, turn: Turn) -> None:
        fill(ends[0])
        assert turn.goes_on()
        assert not turn.goes_on_when_writable(), "the client takes nothing"
        while len(ends[1].recv(1 << 20, socket.MSG_DONTWAIT)) == 1 << 20:
            pass
        assert turn.goes_on_when_writable()

    in_a_turn(ask, ends[0])


def test_a_turn_ends_with_its_time(ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "TURN_S", 0)

    def ask(_: EventLoop, turn: Turn) -> None:
        assert not turn.goes_on()
        assert not turn.goes_on_when_writable()

    in_a_turn(ask, ends[0])


def test_what_a_thread_calls_ends_a_turn(ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "TURN_S", 60)

    def ask(loop: EventLoop, turn: Turn) -> None:
        assert turn.goes_on()
        loop.call_soon_threadsafe(lambda: None)
        assert not turn.goes_on()

    in_a_turn(ask, ends[0])


def test_another_loop_is_refused() -> None:
    async def asked() -> None:
        running_loop()

    with pytest.raises(AssertionError):
        asyncio.run(asked())


def test_a_loop_tells_of_calls_that_wait_and_of_whatever_else_does() -> None:
    async def asked() -> tuple[bool, bool, list[bool]]:
        loop = running_loop()
        before = loop.has_calls()
        loop.call_soon(lambda: None)
        called = loop.has_calls()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            loop.add_reader(ours, lambda: None)
            found = [bool(select.select([loop.fileno()], [], [], 0)[0])]
            theirs.send(b"x")
            found.append(bool(select.select([loop.fileno()], [], [], 0)[0]))
            loop.remove_reader(ours)
        return before, called, found

    with asyncio.Runner(loop_factory=EventLoop) as runner:
        assert runner.run(asked()) == (False, True, [False, True])
