"""Who sent a request, and over which connection (Kafka's RequestContext, KafkaPrincipal and SecurityProtocol)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tiering.endpoint.protocol.requests import RequestHeader


class SecurityProtocol(StrEnum):
    """How a listener's connections are encrypted and authenticated."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def is_sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """Who a client is. As text `User:alice`."""

    name: str
    type: str = "User"

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = KafkaPrincipal("ANONYMOUS")
"""Clients of listeners that ask nobody who he is."""


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """What the requests of a connection have in common."""

    connection_id: str
    """Never that of another connection of this process."""
    client_address: str
    """An IP address."""
    client_port: int
    principal: KafkaPrincipal = ANONYMOUS
    listener_name: str = "PLAINTEXT"
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request's header, and the connection that it came over."""

    header: RequestHeader
    connection: ConnectionContext
    done: dict[Any, Any] = field(default_factory=dict)
    """What of the request is done already, where the rest has to wait: it is handled again, and nothing is done twice."""

    @property
    def version(self) -> int:
        """Of the request's API."""
        return self.header.version

    @property
    def client_id(self) -> str:
        """What the client calls itself, empty if it does not."""
        return self.header.client_id or ""

    @property
    def principal(self) -> KafkaPrincipal:
        """Who the client is."""
        return self.connection.principal

    @property
    def client_address(self) -> str:
        """The client's IP address."""
        return self.connection.client_address
