"""How the clients of a listener say who they are."""

from dataclasses import dataclass
from typing import Final

from tiering.endpoint.authentication.authenticator import SaslConfig
from tiering.endpoint.request_context import SecurityProtocol


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener's name and security protocol (`listener.security.protocol.map`). With a SASL protocol, `sasl` is there."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl: SaslConfig | None = None

    @property
    def name(self) -> str:
        """Its name, as in `listeners`."""
        return self.protocol

    @property
    def authenticates(self) -> bool:
        """Whether clients are asked who they are."""
        return self.protocol.is_sasl or self.protocol.is_encrypted


PLAINTEXT: Final = Listener()
"""Everybody is ANONYMOUS."""
