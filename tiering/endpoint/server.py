"""Sockets under the state machine of connections, and threads that answer: one process, asyncio for waiting only.

Bytes are received and sent on the event loop's thread with non-blocking sockets, one turn at a time. Requests are answered on a
few threads, since a store may take its time.
"""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from time import monotonic
from typing import Any

from local_log.errors import LogError
from tiering.endpoint.acceptor import Acceptor
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.kafka_apis import Later, OfArchive, Throttled, Waits, answer_fetch_at_once, handle_at_once, result_of
from tiering.endpoint.apis.repeated_fetches import KnownFetches
from tiering.endpoint.authentication.authenticator import Authentication
from tiering.endpoint.authentication.listener import PLAINTEXT, Listener
from tiering.endpoint.authentication.sasl_server import SaslFailed
from tiering.endpoint.channel import KafkaChannel, channel_of
from tiering.endpoint.delayed_fetches import DelayedFetch, DelayedFetches
from tiering.endpoint.event_loop import EventLoop, running_loop
from tiering.endpoint.fetch_loop.loop import AnswerReady
from tiering.endpoint.fetches_at_once import FetchesAtOnce
from tiering.endpoint.network.actions import Action, Close, Id, Pause
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.socket_server import SocketServer
from tiering.endpoint.server_status import ConnectedClient, ServerStatus, client_id_in
from tiering.endpoint.settings import FETCH_MAX_BYTES
from tiering.endpoint.transport import peer_of
from tiering.endpoint.writing import Writing

AT_ONCE_MAX = 16
"""Requests that are answered before the sockets are looked at again."""
TICK_S = 1.0
GROUPS_TICK_S = 0.1
DRAIN_S_MAX = 8.0
DRAINED_S = 0.01
"""How often it is looked whether all is answered."""


_Found = list[Any] | Waits | Later | Throttled | Authentication


@dataclass(slots=True)
class Server:
    """Serves one listener until it is told to stop."""

    context: Context
    config: SocketServerConfig
    pool: Executor
    report: Callable[[str], object]
    """Is told why connections are closed."""
    listener: Listener = PLAINTEXT
    on_stop: Callable[[], object] = lambda: None
    """Called when it begins to stop, on one of the threads of `pool`."""
    load_loop: Callable[[], AnswerReady | None] = lambda: None
    """Loads the compiled loop for fetches, on one of the threads of `pool`, if there is one."""
    _core: SocketServer = field(init=False)
    _channels: dict[int, KafkaChannel] = field(default_factory=dict)
    _numbers: "count[int]" = field(default_factory=count)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: EventLoop = field(init=False)
    _writing: Writing = field(init=False)
    _known_fetches: KnownFetches = field(default_factory=dict)
    _fetches: FetchesAtOnce = field(init=False)
    _is_handling: bool = False
    _moved_s: float = 0
    _delayed: DelayedFetches = field(init=False)
    _for_thread: dict[Id, tuple[float | None, Callable[[], _Found]]] = field(default_factory=dict)
    """What is to be asked by a thread, by the number of its connection."""
    _at_once: Context = field(init=False)
    """For answers that may not wait."""

    def __post_init__(self) -> None:
        self._core = SocketServer(self.config)
        self._at_once = replace(self.context, may_wait=False)
        self._delayed = DelayedFetches(self.context.logs, self.pool, self._ask_again)
        self._fetches = FetchesAtOnce(self._core, self._at_once, self._send, self._received, self._receive)

    async def serve(self, listener: socket.socket) -> None:
        """Until `stop`; then answers what has been asked, and ends."""
        self._loop = running_loop()
        self._writing = Writing(self._loop)
        acceptor = Acceptor(self._loop, listener, self._take, self.context.report, self.config.send_buffer_bytes)
        acceptor.start()
        if self.context.quotas is None:
            self.pool.submit(self._fetches.load, self.load_loop, self._loop, self._channels)
        self._tick_groups()
        try:
            while not self._stopping.is_set():
                await self._tick()
        finally:
            acceptor.close()
        await self._drain()
        self._fetches.end()

    @property
    def status(self) -> ServerStatus:
        """For any thread. Before and after it serves, `moved_s` is 0."""
        return ServerStatus(len(self._core), self._core.memory_used, self._moved_s, self._stopping.is_set())

    @property
    def clients(self) -> tuple[ConnectedClient, ...]:
        """Every connection, for any thread."""
        channels = tuple(self._channels.values())
        found = ((channel.client_id, channel.connection) for channel in channels)
        return tuple(ConnectedClient(name or "", of.client_address, str(of.principal)) for name, of in found)

    def stop(self) -> None:
        """Begins to stop."""
        self._stopping.set()

    async def _tick(self) -> None:
        self._moved_s = monotonic()
        try:
            await asyncio.wait_for(self._stopping.wait(), TICK_S)
        except TimeoutError:
            self.context.reads.forget_recent()
            self._fetches.tick()
            self._do(self._core.tick(self._now_ms()))
            self._handle_all()  # what is closed may have made room

    def _tick_groups(self) -> None:
        """Looks often whether something is due, since rebalances and sessions are measured in seconds."""
        if not self._stopping.is_set():
            self._loop.call_later(GROUPS_TICK_S, self._tick_groups)  # first: what fails now is tried again
            for one in self.context.coordinators:
                if one.is_due():
                    self.pool.submit(one.tick)
            self._core.look()
            self._fetches.look()
            self._handle_all()

    async def _drain(self) -> None:
        own: list[Future[Any]] = [self.pool.submit(stop) for stop in (self.on_stop, *(c.stop for c in self.context.coordinators))]
        self._do(self._core.drain())
        self._delayed.ask_all()
        deadline = monotonic() + DRAIN_S_MAX
        while (len(self._core) or not all(one.done() for one in own)) and monotonic() < deadline:
            await asyncio.sleep(DRAINED_S)
        for channel in list(self._channels.values()):
            self._drop(channel)

    def _now_ms(self) -> int:
        return int(monotonic() * 1000)

    def _take(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        """A connection was accepted."""
        try:
            number = next(self._numbers)
            channel = channel_of(accepted, address, number, self.listener, self.context, self._known_fetches)
        except OSError:
            accepted.close()
            return
        self._channels[channel.number] = channel
        authenticates = self.listener.authenticates
        self._do(self._core.accepted(channel.number, address[0], self._now_ms(), authenticates=authenticates))
        if channel.number in self._channels:
            self._watch(channel)

    def _watch(self, channel: KafkaChannel) -> None:
        if not self._fetches.watches(channel):
            self._loop.add_reader(channel.transport.socket.fileno(), self._receive, channel)

    def _unwatch(self, channel: KafkaChannel) -> None:
        if not self._fetches.unwatches(channel):
            self._loop.remove_reader(channel.transport.socket.fileno())

    def _receive(self, channel: KafkaChannel) -> None:
        try:
            if not (channel.is_ready or self._shakes_hands(channel)):
                return
            data = channel.transport.receive()
        except BlockingIOError:
            return
        except SaslFailed as e:
            self._do(self._core.refuse(channel.number, str(e)))
            return
        except OSError:
            data = b""
        if not data:
            self._gone(channel)
            return
        self._received(channel, data)

    def _received(self, channel: KafkaChannel, data: bytes) -> None:
        if not self._fetches.answers(channel, data):
            self._do(self._core.received(channel.number, data, self._now_ms()))
            self._handle_all()

    def _shakes_hands(self, channel: KafkaChannel) -> bool:
        """Whether the handshake is over. Raises as the transport does."""
        try:
            if not channel.shake_hands(self.listener):
                self._writing.wait(channel, self._receive)
                return False
        except BlockingIOError:
            self._writing.end(channel)  # the socket takes more bytes, and none are left: the loop would come back at once
            raise
        self._writing.end(channel)
        if channel.is_known_by_handshake(self.listener):
            self._core.authenticated(channel.number)
        return True

    def _handle_all(self) -> None:
        """Answers requests at once or hands them to threads. So many at once at most, then the sockets have their turn."""
        if self._is_handling:
            return  # whoever does goes on with what is ready now
        self._is_handling = True
        try:
            for _ in range(AT_ONCE_MAX):
                if (number := self._core.take_for_archive()) is not None or (number := self._core.take_for_thread()) is not None:
                    self._guarded(number, partial(self._run, number, *self._for_thread.pop(number)))
                elif (again := self._core.take_again()) is not None:
                    self._guarded(again, partial(self._handle_again, again))
                elif (taken := self._core.take_request()) is not None:
                    self._guarded(taken[0], partial(self._handle, *taken))
                else:
                    return
            self._loop.call_soon(self._handle_all)
        finally:
            self._is_handling = False

    def _guarded(self, number: Id, act: Callable[[], None]) -> None:
        """Does something for a connection, and closes it if that fails: a bug of ours must not leave a client waiting."""
        failed = result_of(act)
        if failed is not None and number in self._channels:
            self._do(self._core.refuse(number, str(failed)))
            self._handle_all()
        elif failed is not None:
            self.report(str(failed))

    def _handle(self, number: Id, frame: bytes) -> None:
        assert isinstance(number, int)
        channel = self._channels[number]
        channel.asked = self.context.metrics.begun(frame, monotonic())
        if channel.client_id is None:
            channel.client_id = client_id_in(frame)
        try:
            authenticates = channel.authenticator is not None and channel.authenticator.takes(frame)
        except SaslFailed as e:
            self._do(self._core.refuse(number, str(e)))
            return
        if channel.authenticator is not None and authenticates:
            self._submit(number, None, partial(channel.authenticator.receive, frame))
            return
        found = result_of(partial(handle_at_once, frame, channel.connection, self._at_once))
        if callable(found):
            self._submit(number, None, found)
            return
        if isinstance(found, list):
            channel.fetches.unlike(frame, self.context.settings[FETCH_MAX_BYTES])
        self._answered(number, None, found)

    def _submit(self, number: int, deadline: float | None, ask: Callable[[], _Found]) -> None:
        self._for_thread[number] = deadline, ask
        if isinstance(ask, OfArchive):
            self._core.asks_archive(number)
        elif self._core.asks_thread(number):
            self._run(number, *self._for_thread.pop(number))

    def _run(self, number: Id, deadline: float | None, ask: Callable[[], _Found]) -> None:
        assert isinstance(number, int)

        def work() -> None:
            self._loop.call_soon_threadsafe(self._answered, number, deadline, result_of(ask))

        self.pool.submit(work)

    def _answered(self, number: int, deadline: float | None, found: _Found | LogError) -> None:
        self._guarded(number, partial(self._take_answer, number, deadline, found))

    def _take_answer(self, number: int, deadline: float | None, found: _Found | LogError) -> None:
        channel = self._channels.get(number)
        if channel is None:
            self._core.answered(number, ())
        elif isinstance(found, LogError):
            self._do(self._core.refuse(number, str(found)))
        elif isinstance(found, Waits):
            until = deadline or monotonic() + found.request.max_wait_ms / 1000
            may_wait = self._core.waits(number, found.size)
            self._delayed.wait(number, DelayedFetch(found, until if may_wait else monotonic()))
        elif isinstance(found, Later):
            self._core.waits(number)
            call, parts = self._loop.call_soon_threadsafe, found.parts
            found.response.add_done_callback(lambda _: call(self._answered, number, None, result_of(parts)))
        elif isinstance(found, Throttled):
            channel.throttle_ms = found.throttle_ms
            self._answer(channel, found.parts)
        elif isinstance(found, Authentication):
            self._authenticated(channel, found)
        else:
            self._answer(channel, found)
        self._handle_all()

    def _authenticated(self, channel: KafkaChannel, found: Authentication) -> None:
        """A client has said something of who it is; one that fails learns it later, so that guessing takes its time."""
        authenticator = channel.authenticator
        assert authenticator is not None
        if found.failure:
            channel.failure = found.failure
            self._core.waits(channel.number)
            answer = partial(self._answer, channel, found.parts)
            self._loop.call_later(self.config.failed_authentication_delay_ms / 1000, self._guarded, channel.number, answer)
            return
        if authenticator.principal is not None:
            channel.connection = replace(channel.connection, principal=authenticator.principal)
            self._core.authenticated(channel.number)
        self._answer(channel, found.parts)

    def _answer(self, channel: KafkaChannel, parts: list[Any]) -> None:
        if channel.number in self._channels:
            channel.answered_s = monotonic()
            channel.send = self._core.answered(channel.number, parts)
            self._send(channel)

    def _ask_again(self, number: int) -> None:
        self._core.ask_again(number)
        self._handle_all()

    def _handle_again(self, number: Id) -> None:
        assert isinstance(number, int)
        fetch = self._delayed.take(number)
        may_wait = monotonic() < fetch.deadline and not self._stopping.is_set()
        found = result_of(partial(answer_fetch_at_once, fetch.request, self._at_once, may_wait=may_wait))
        if callable(found):
            self._submit(number, fetch.deadline, found)
        else:
            self._answered(number, fetch.deadline, found)

    def _send(self, channel: KafkaChannel) -> None:
        """Sends one turn's bytes of the answer, and the rest when the socket takes more."""
        self._guarded(channel.number, partial(self._send_turn, channel))

    def _send_turn(self, channel: KafkaChannel) -> None:
        try:
            left = channel.send_turn(self.config, self._writing.turn(channel, self.config))
        except OSError:
            self._gone(channel)
            return
        self._core.progressed(channel.number, self._now_ms())
        if left:
            self._writing.wait(channel, self._send)
            return
        self._writing.end(channel)
        channel.send = None
        if channel.asked is not None:
            self.context.metrics.sent(channel.asked, channel.answered_s, monotonic())
        if channel.failure:
            self._do(self._core.refuse(channel.number, channel.failure))
            self._handle_all()
        elif channel.throttle_ms and not self._stopping.is_set():
            self._loop.call_later(channel.throttle_ms / 1000, self._sent, channel)
        else:
            self._sent(channel)

    def _sent(self, channel: KafkaChannel) -> None:
        if channel.number in self._channels:
            channel.throttle_ms = 0
            self._do(self._core.sent(channel.number, self._now_ms()))
            self._fetches.arm(channel)
            self._handle_all()

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            assert isinstance(action.connection, int)
            channel = self._channels[action.connection]
            if isinstance(action, Close):
                if action.reason:
                    self.report(f"closed the connection of {peer_of(channel.transport.socket)}: {action.reason}")
                self._drop(channel)
            elif isinstance(action, Pause):
                self._unwatch(channel)
            else:
                self._watch(channel)

    def _gone(self, channel: KafkaChannel) -> None:
        self._core.closed(channel.number)
        self._drop(channel)
        self._handle_all()

    def _drop(self, channel: KafkaChannel) -> None:
        self._unwatch(channel)
        self._writing.end(channel)
        channel.transport.socket.close()
        del self._channels[channel.number]
        self._delayed.remove(channel.number)
        self._for_thread.pop(channel.number, None)
