"""How the clients of a listener say who they are."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from remote.clock import Randomness
from tiering.endpoint.authentication.authenticator import SaslConfig
from tiering.endpoint.authentication.oauthbearer import OAuthBearerServer, Verify
from tiering.endpoint.authentication.plain import PlainServer
from tiering.endpoint.authentication.sasl_server import SaslServer
from tiering.endpoint.authentication.scram import MECHANISMS, ScramServer
from tiering.endpoint.authentication.tls import Tls
from tiering.endpoint.authentication.users import UserFile
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.settings import MAX_REAUTHENTICATION, SASL_MECHANISMS, Settings

NONCE_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener's name and security protocol (`listener.security.protocol.map`). With a SASL protocol, `sasl` is
    there, with one of TLS, `tls`."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl: SaslConfig | None = None
    tls: Tls | None = None
    users: UserFile | None = None
    """Those with passwords."""

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


def sasl_config(settings: Settings, users: UserFile | None, verify: Verify | None, randomness: Randomness) -> SaslConfig:
    """The mechanisms that are enabled: with passwords over one file of users, and with tokens."""
    mechanisms = {name: _mechanism(name, users, verify, randomness) for name in settings[SASL_MECHANISMS]}
    return SaslConfig(mechanisms, settings[MAX_REAUTHENTICATION])


def _mechanism(name: str, users: UserFile | None, verify: Verify | None, randomness: Randomness) -> Callable[[], SaslServer]:
    if name == "OAUTHBEARER":
        assert verify is not None
        return lambda: OAuthBearerServer(verify)
    assert users is not None
    if name == "PLAIN":
        return lambda: PlainServer(users.has_password)

    def scram() -> SaslServer:
        nonce = b64encode(randomness.random_bytes(NONCE_BYTES)).decode()
        return ScramServer(MECHANISMS[name], lambda user: users.credential(name, user), nonce)

    return scram
