"""One client's connection with what is known of it (Kafka's KafkaChannel)."""

import socket
from dataclasses import dataclass, replace
from typing import Final

from local_log.errors import Conflict
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.repeated_fetches import KnownFetches, RepeatedFetches
from tiering.endpoint.authentication.authenticator import SaslAuthenticator
from tiering.endpoint.authentication.listener import Listener
from tiering.endpoint.authentication.sasl_server import SaslFailed
from tiering.endpoint.event_loop import Turn
from tiering.endpoint.metrics import Asked
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.send import Send
from tiering.endpoint.request_context import ConnectionContext
from tiering.endpoint.transport import PlaintextTransport, TlsTransport, Transport

TURN_BYTES_MAX: Final = 4 << 20
"""So much of what is in memory one call may send while nobody else waits."""


@dataclass(slots=True)
class KafkaChannel:
    """For the thread of its sockets."""

    number: int
    transport: Transport
    connection: ConnectionContext
    authenticator: SaslAuthenticator | None
    fetches: RepeatedFetches
    send: Send | None = None
    is_writing: bool = False
    is_ready: bool = False
    """Whether the handshake of the transport is over."""
    asked: Asked | None = None
    """What is answered now, if it is counted."""
    answered_s: float = 0
    """When the answer was there."""
    unknown: int = 0
    """How many requests came since the compiled loop last learned one, as far as it knew none of them."""
    throttle_ms: int = 0
    """For how long no further request is taken after this answer."""
    failure: str = ""
    """Why the connection is closed after this answer, empty if it is not."""
    client_id: str | None = None
    """What the client called itself in its first request; None before that."""

    def shake_hands(self, listener: Listener) -> bool:
        """Whether the handshake of the transport is over, which may say who the client is. Raises as the transport does."""
        if not self.transport.handshake():
            return False
        self.is_ready = True
        if self.is_known_by_handshake(listener):
            assert listener.tls is not None
            assert isinstance(self.transport, TlsTransport)
            self.connection = replace(self.connection, principal=listener.tls.principal(self.transport.socket))
        return True

    def takes_turns(self, config: SocketServerConfig) -> bool:
        """Whether what is left of the answer is too much to be sent in one turn."""
        return self.send is not None and self.send.left > config.whole_bytes_max

    def send_turn(self, config: SocketServerConfig, turn: Turn | None = None) -> int:
        """Sends one turn's bytes of the answer, or more of them until `turn` ends; how many are left.

        Raises OSError, and LogError if a file is not as it was.
        """
        send = self.send
        assert send is not None
        while send.left:
            is_full = self._send_some(send, config, config.whole_bytes_max if turn is None else TURN_BYTES_MAX)
            if turn is None or not (turn.goes_on_when_writable() if is_full else turn.goes_on()):
                break
        return send.left

    def _send_some(self, send: Send, config: SocketServerConfig, bytes_max: int) -> bool:
        """Sends one turn's bytes, of what is in memory at most so many. True if the socket took no more before."""
        is_in_memory = send.buffered == send.size
        left = min(send.left, bytes_max if is_in_memory else config.whole_bytes_max)
        if send.left > left and not is_in_memory:
            left = config.turn_bytes_max
        try:
            while send.left and left > 0:
                sent = self.transport.send(send, left)
                send.advance(sent)
                left -= sent
        except BlockingIOError:
            return True
        except EOFError as e:
            raise Conflict(str(e)) from e
        return False

    def is_authenticated(self, frame: bytes) -> bool:
        """Whether it is known who sends a request, which is not about that."""
        try:
            return self.authenticator is None or not self.authenticator.takes(frame)
        except SaslFailed:  # no longer; whoever handles the request is told so, too
            return False

    def is_known_by_handshake(self, listener: Listener) -> bool:
        """Whether nobody asks the client who it is but TLS."""
        return listener.tls is not None and self.authenticator is None


def channel_of(
    accepted: socket.socket, address: tuple[str, int], number: int, listener: Listener, context: Context, known: KnownFetches
) -> KafkaChannel:
    """A connection that was accepted. Raises OSError if the client is gone already."""
    connection = ConnectionContext(str(number), *address, listener_name=listener.name, security_protocol=listener.protocol)
    authenticator = None if listener.sasl is None else SaslAuthenticator(listener.sasl, context.clock, context.apis)
    tls = listener.tls
    transport = PlaintextTransport(accepted) if tls is None else TlsTransport(tls.wrap(accepted))
    return KafkaChannel(number, transport, connection, authenticator, RepeatedFetches(known))
