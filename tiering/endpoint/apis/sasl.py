"""SaslHandshake and SaslAuthenticate where no client is asked who it is, or it has said so already."""

from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeResponse


def sasl_handshake() -> SaslHandshakeResponse:
    """Refuses, as a broker does on a listener without SASL."""
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate() -> SaslAuthenticateResponse:
    """Refuses."""
    return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate where no SaslHandshake came before")
