"""Fetches that are answered on the thread of the sockets as they come: by the compiled loop, once it is loaded, or one by one."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, TypeVar

from local_log.file_range import FileRange
from local_log.formats.primitives import Buffer
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.kafka_apis import bug
from tiering.endpoint.apis.repeated_fetches import Answer
from tiering.endpoint.channel import KafkaChannel
from tiering.endpoint.event_loop import EventLoop
from tiering.endpoint.fetch_loop.loop import AnswerReady, FetchLoop, Received, Unsent
from tiering.endpoint.fetch_loop.tables import MAPPED_MAX, NO_FILE
from tiering.endpoint.metrics import Asked
from tiering.endpoint.network.socket_server import SocketServer
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.transport import SMALL_BYTES, PlaintextTransport

T = TypeVar("T")

UNKNOWN_MAX: Final = 8
"""After so many requests that the loop does not know, a connection is left to Python until there is one that it can learn."""
TURN_S: Final = 0.001
"""So long what comes over the connections of the loop is handled, before other sockets and timers have their turn."""


@dataclass(slots=True)
class FetchesAtOnce:
    """Those of one server: it sends, and is given what is no such fetch. `context` is that of answers that may not wait."""

    core: SocketServer
    context: Context
    send: Callable[[KafkaChannel], object]
    received: Callable[[KafkaChannel, bytes], object]
    receive: Callable[[KafkaChannel], object]
    """Receives from a connection that is at its end, or failed."""
    loop: FetchLoop | None = None
    events: asyncio.AbstractEventLoop | None = None
    is_over: bool = False
    _channels: dict[int, KafkaChannel] = field(default_factory=dict)
    """The connections of the loop, by socket."""

    def load(
        self, load: Callable[[], AnswerReady | None], events: asyncio.AbstractEventLoop, channels: Mapping[int, KafkaChannel]
    ) -> None:
        """Loads the loop, which is then given the connections that there are. For a thread of its own."""
        loaded = load()
        if loaded is not None:
            with suppress(RuntimeError):  # it has ended meanwhile
                events.call_soon_threadsafe(self._start, loaded, events, channels)

    def _start(self, loaded: AnswerReady, events: asyncio.AbstractEventLoop, channels: Mapping[int, KafkaChannel]) -> None:
        if not self.is_over:
            others = events.fileno() if isinstance(events, EventLoop) else NO_FILE
            self.loop, self.events = FetchLoop(loaded, self.context, others), events
            events.add_reader(self.loop, self.run)
            for channel in channels.values():
                self._join(channel)

    def end(self) -> None:
        """The loop has no connection any more."""
        self.is_over = True
        if self.loop is not None and self.events is not None:
            self.events.remove_reader(self.loop)
            self.loop.close()
        self.loop = None

    def watches(self, channel: KafkaChannel) -> bool:
        """Whether the loop receives from a connection from now on: from those without TLS, once it is loaded."""
        socket = channel.transport.socket.fileno()
        is_plain = isinstance(channel.transport, PlaintextTransport)
        if self.loop is None or not is_plain or channel.unknown > UNKNOWN_MAX or not self.loop.add(socket):
            return False
        channel.is_ready = True
        self._channels[socket] = channel
        self.arm(channel)
        return True

    def unwatches(self, channel: KafkaChannel) -> bool:
        """Whether it did, and does no more."""
        socket = channel.transport.socket.fileno()
        if self.loop is None or self._channels.pop(socket, None) is None:
            return False
        self.loop.remove(socket)
        return True

    def arm(self, channel: KafkaChannel) -> None:
        """Lets the loop answer what comes next over a connection of its own, if this is idle and its client stays who it is."""
        socket, authenticator = channel.transport.socket.fileno(), channel.authenticator
        is_known = authenticator is None or authenticator.is_final
        if self.loop is not None and is_known and socket in self._channels and self.core.is_idle(channel.number):
            self.loop.arm(socket, channel.connection)

    def run(self) -> None:
        """Lets the loop answer, and handles its events."""
        until_s = monotonic() + TURN_S
        while (event := self._asked(self._next_event)) is not None:
            channel = self._channels[event.socket]
            if isinstance(event, Unsent):
                self._goes_on(channel, event)
            elif event.data:
                channel.unknown += 1
                self.received(channel, event.data)
            else:
                self.receive(channel)
            if channel.unknown > UNKNOWN_MAX:
                self._leave(channel)
            else:
                self.arm(channel)
            if monotonic() >= until_s:
                return

    def _next_event(self, loop: FetchLoop) -> Received | Unsent | None:
        may_wait = not (isinstance(self.events, EventLoop) and self.events.has_calls())
        return loop.run(may_answer=self.core.may_answer_at_once, may_wait=may_wait)

    def tick(self) -> None:
        """To be called every second, before idle connections are looked for."""
        for socket, answered_ms in self._asked(lambda loop: [*loop.answered()]) or ():
            channel = self._channels.get(socket)
            if channel is not None and self.core.is_idle(channel.number):
                self.core.answered_at_once(channel.number, answered_ms)
        self._asked(lambda loop: loop.look())

    def look(self) -> None:
        """To be called often."""
        self._asked(lambda loop: loop.look_at_topics())

    def _asked(self, ask: Callable[[FetchLoop], T]) -> T | None:
        """What the loop gives, None without one. If it fails, which is a bug of ours, its connections are left to Python."""
        try:
            return None if self.loop is None else ask(self.loop)
        except Exception as e:
            self.context.report(f"fetches are answered without the compiled loop from now on: {bug(e)}")
            for channel in list(self._channels.values()):
                self._leave(channel)
            self.end()
            return None

    def answers(self, channel: KafkaChannel, data: bytes) -> bool:
        """Answers a fetch that is like those before it, if it is one, and nothing else has its turn first."""
        frame, began_s = self.core.at_once(channel.number, data), monotonic()
        if frame is None or not channel.is_authenticated(frame):
            return False
        answer = channel.fetches.answer(frame, channel.connection, self.context)
        if answer is None:
            return False
        asked, answered_s = Asked(FETCH.name, answer.version, len(frame), began_s), monotonic()
        sent = channel.transport.send_at_once(answer.parts) if answer.size <= SMALL_BYTES else 0
        now_s = monotonic()
        if sent == answer.size:
            self.core.answered_at_once(channel.number, int(now_s * 1000))
            self.context.metrics.sent(asked, answered_s, now_s)
            self._learn(channel, answer)
            return True
        if answer.size > SMALL_BYTES:
            self._learn(channel, answer)
        channel.asked, channel.answered_s = asked, answered_s
        self._begin(channel, answer.parts, sent)
        return True

    def _learn(self, channel: KafkaChannel, answer: Answer) -> None:
        if answer.size <= MAPPED_MAX and self._asked(lambda loop: loop.learn(answer, channel.connection)):
            channel.unknown = 0
            self._join(channel)

    def _leave(self, channel: KafkaChannel) -> None:
        if self.events is not None and self.unwatches(channel):
            self.events.add_reader(channel.transport.socket.fileno(), self.receive, channel)

    def _join(self, channel: KafkaChannel) -> None:
        socket = channel.transport.socket.fileno()
        if self.events is None or socket in self._channels or not self.events.remove_reader(socket):
            return  # it is the loop's already, or is paused
        if not self.watches(channel):
            self.events.add_reader(socket, self.receive, channel)

    def _goes_on(self, channel: KafkaChannel, unsent: Unsent) -> None:
        channel.asked, channel.answered_s = unsent.asked, unsent.answered_s
        self._begin(channel, unsent.parts, unsent.sent)

    def _begin(self, channel: KafkaChannel, parts: Iterable[Buffer | FileRange], sent: int) -> None:
        """Goes on with an answer of which so many bytes are sent."""
        assert channel.asked is not None
        self.core.begin_at_once(channel.number, channel.asked.size, int(monotonic() * 1000))
        channel.send = self.core.answered(channel.number, parts)
        assert channel.send is not None
        channel.send.advance(sent)
        self.send(channel)
