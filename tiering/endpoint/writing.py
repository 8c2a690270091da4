"""Which sockets are to take more bytes, and how long an answer may be sent before others have their turn."""

from collections.abc import Callable
from dataclasses import dataclass

from tiering.endpoint.channel import KafkaChannel
from tiering.endpoint.event_loop import EventLoop, Turn
from tiering.endpoint.network.config import SocketServerConfig


@dataclass(slots=True)
class Writing:
    """For the thread of the event loop."""

    loop: EventLoop
    _count: int = 0

    def wait(self, channel: KafkaChannel, then: Callable[[KafkaChannel], object]) -> None:
        """Calls `then` whenever the socket takes more bytes, until `end`."""
        if not channel.is_writing:
            self.loop.add_writer(channel.transport.socket.fileno(), then, channel)
            self._count += 1
            channel.is_writing = True

    def end(self, channel: KafkaChannel) -> None:
        """Waits no more for the socket, if it did."""
        if channel.is_writing:
            self.loop.remove_writer(channel.transport.socket.fileno())
            self._count -= 1
            channel.is_writing = False

    def turn(self, channel: KafkaChannel, config: SocketServerConfig) -> Turn | None:
        """A longer turn for an answer that needs several, while no other one waits to be sent. The turn waits for its socket."""
        if self._count != channel.is_writing or not channel.takes_turns(config):
            return None
        self.end(channel)
        return self.loop.turn(channel.transport.socket.fileno())
