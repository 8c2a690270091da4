"""SaslHandshake (17): the mechanism with which a client is going to authenticate."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import STRING, array, int16, string


@dataclass(frozen=True, slots=True)
class SaslHandshakeRequest:
    """Asks for a mechanism. After version 0 the tokens follow as bare frames, after version 1 in SaslAuthenticate."""

    mechanism: str = string()


@dataclass(frozen=True, slots=True)
class SaslHandshakeResponse:
    """Whether the mechanism is enabled, and which are."""

    error_code: int = int16()
    mechanisms: tuple[str, ...] = array(STRING)
