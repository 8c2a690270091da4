"""SaslAuthenticate (36): a token of the mechanism in each direction."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import int16, int64, secret, string


@dataclass(frozen=True, slots=True)
class SaslAuthenticateRequest:
    """The client's token, which may hold its password: no message and no representation shows it."""

    auth_bytes: bytes = secret()


@dataclass(frozen=True, slots=True)
class SaslAuthenticateResponse:
    """The server's token; with the last one, for how many ms the client is authenticated, 0 without a limit."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    auth_bytes: bytes = secret()
    session_lifetime_ms: int = int64("1+")
