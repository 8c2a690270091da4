"""The limits of a socket server, named as Kafka's broker settings where Kafka has them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tiering.endpoint.settings import (
    CONNECTIONS_MAX_IDLE,
    FAILED_AUTHENTICATION_DELAY,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    NUM_IO_THREADS,
    QUEUED_MAX_REQUEST_BYTES,
    REMOTE_LOG_READER_THREADS,
    SASL_RECEIVE_SIZE,
    SOCKET_REQUEST_MAX_BYTES,
    SOCKET_SEND_BUFFER_BYTES,
    Settings,
)


@dataclass(frozen=True, slots=True)
class SocketServerConfig:
    """All times are in ms, all sizes in bytes."""

    request_bytes_max: int = 100 << 20
    """`socket.request.max.bytes`: a larger request closes its connection."""

    queued_bytes_max: int = 256 << 20
    """`queued.max.request.bytes`, here with the answers: above it, no request is begun until others are answered.

    Requests that are arriving may hold as much again.
    """

    parsed_ratio: int = 64
    """Bytes of memory that a byte of a request may take until it is answered, up to `queued_bytes_max` for all of it."""

    request_threads: int = 8
    """`num.io.threads`: so many requests are answered at a time; no more are begun, as answers may become large.

    Fetches that wait for records do not count, nor the next ones.
    """

    archive_threads: int = 10
    """`remote.log.reader.threads`: so many more are answered at a time that ask an archive.

    And so many requests of one API may take long, each on a thread, before further ones of it wait until these are answered.
    """

    long_max: int = 100
    """So many requests of all APIs may take long before they hold up others."""

    connections_max: int = 10_000
    """`max.connections`: further ones are closed at once."""

    connections_per_ip_max: int = 10_000
    """`max.connections.per.ip`."""

    connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    """`max.connections.per.ip.overrides`: by IP address."""

    idle_ms_max: int = 600_000
    """`connections.max.idle.ms`: a connection without a byte in either direction for so long is closed."""

    receive_ms_max: int = 60_000
    """How long one request may take to arrive, so that half requests do not hold memory."""

    authentication_ms_max: int = 30_000
    """How long a client may take until it has authenticated, a TLS handshake included."""

    unauthenticated_bytes_max: int = 512 << 10
    """`sasl.server.max.receive.size`: the largest request of a client that has not authenticated."""

    failed_authentication_delay_ms: int = 100
    """`connection.failed.authentication.delay.ms`: so long later a client is told of it, and its connection is closed."""

    stalled_ms_max: int = 30_000
    """While answers fill the memory and requests wait for it, a client that takes no byte of its answer for so long is closed."""

    ahead_bytes_max: int = 64 << 10
    """Bytes that are read while a request of the same connection is answered: pipelined requests."""

    send_buffer_bytes: int = 512 << 10
    """`socket.send.buffer.bytes`: of each connection, doubled by Linux; -1 leaves it to the system."""

    turn_bytes_max: int = 512 << 10
    """Bytes of a larger answer from files that one connection is sent before it is looked whether others wait for their turn."""

    whole_bytes_max: int = (1 << 20) + (64 << 10)
    """An answer of so many bytes is sent in one turn: a MiB of batches, as most consumers ask for, and what is around them.

    So is as much of a larger one that is in memory.
    """

    @classmethod
    def of(cls, settings: Settings) -> "SocketServerConfig":
        """As the endpoint is set."""
        return cls(
            request_bytes_max=settings[SOCKET_REQUEST_MAX_BYTES],
            queued_bytes_max=settings[QUEUED_MAX_REQUEST_BYTES],
            request_threads=settings[NUM_IO_THREADS],
            archive_threads=settings[REMOTE_LOG_READER_THREADS],
            connections_max=settings[MAX_CONNECTIONS],
            connections_per_ip_max=settings[MAX_CONNECTIONS_PER_IP],
            connections_per_ip_overrides=settings[MAX_CONNECTIONS_PER_IP_OVERRIDES],
            send_buffer_bytes=settings[SOCKET_SEND_BUFFER_BYTES],
            idle_ms_max=settings[CONNECTIONS_MAX_IDLE],
            unauthenticated_bytes_max=settings[SASL_RECEIVE_SIZE],
            failed_authentication_delay_ms=settings[FAILED_AUTHENTICATION_DELAY],
        )

    @property
    def threads(self) -> int:
        """One for each request that may be answered at a time."""
        return self.request_threads + self.archive_threads + self.long_max
