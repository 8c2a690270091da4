"""The requests by which a client says who it is, as a state machine for each connection (Kafka's SaslServerAuthenticator).

    HANDSHAKE_OR_VERSIONS --ApiVersions--> HANDSHAKE --SaslHandshake--> AUTHENTICATE --last token--> COMPLETE
              +-----------------------------SaslHandshake-----------------^                             |
                                                                          +--SaslHandshake, KIP-368-----+

Whatever fails ends the connection, after the answer if there is one. Other requests are answered in COMPLETE only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from struct import Struct
from typing import Any, Final

from remote.clock import Time
from tiering.endpoint.apis.api_versions import api_versions, unknown_api_versions
from tiering.endpoint.authentication.sasl_server import SaslFailed, SaslServer
from tiering.endpoint.protocol.api_keys import API_VERSIONS, READING_APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.api_versions import ApiVersionsResponse
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tiering.endpoint.protocol.requests import Request, UnknownApiVersions, read_request, write_response
from tiering.endpoint.request_context import KafkaPrincipal

REAUTHENTICATION_MS_MIN: Final = 1_000
"""Kafka's: a client may authenticate anew once a second."""
_KEY, _SIZE = Struct(">h"), Struct(">i")


@dataclass(frozen=True, slots=True)
class SaslConfig:
    """`sasl.enabled.mechanisms`, each with what makes a server for one exchange, and `connections.max.reauth.ms`, 0 for none."""

    mechanisms: Mapping[str, Callable[[], SaslServer]]
    max_reauth_ms: int = 0


@dataclass(frozen=True, slots=True)
class Authentication:
    """The parts of an answer, none if there is no answer. With a `failure` the connection is closed after it."""

    parts: list[Any] = field(repr=False)
    failure: str = ""


class _State(Enum):
    HANDSHAKE_OR_VERSIONS = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()


@dataclass(slots=True)
class SaslAuthenticator:
    """Of one connection, whose requests it is given one after the other."""

    config: SaslConfig
    clock: Time
    apis: Mapping[int, Api] = field(default_factory=lambda: READING_APIS)
    """Those that are offered."""
    principal: KafkaPrincipal | None = None
    """Who the client is, None before it has proved it. It never changes."""
    _state: _State = _State.HANDSHAKE_OR_VERSIONS
    _expires_ms: int | None = None
    """When the session ends, by the clock that nobody sets, as in Kafka."""
    _began_ms: int = 0
    _mechanism: str = ""
    _asked_mechanism: str = ""
    _server: SaslServer | None = None
    _has_bare_tokens: bool = False

    @property
    def is_final(self) -> bool:
        """Whether it is known who the client is, for as long as its connection lasts."""
        return self._state is _State.COMPLETE and self._expires_ms is None

    def takes(self, frame: bytes) -> bool:
        """Whether the request is for `receive`. Raises SaslFailed if it is no longer known who the client is (KIP-368)."""
        if self._state is not _State.COMPLETE:
            return True
        if self._expires_ms is None:
            return False
        now_ms = self.clock.hi_res_clock_ms()
        if frame[:2] == _KEY.pack(SASL_HANDSHAKE.key) and now_ms - self._began_ms >= REAUTHENTICATION_MS_MIN:
            self._began_ms, self._state = now_ms, _State.HANDSHAKE
            return True
        if now_ms > self._expires_ms:
            raise SaslFailed("the client did not authenticate anew before its session expired")
        return False

    def receive(self, frame: bytes) -> Authentication:
        """The answer to a request. Raises LogError if nobody can be authenticated now."""
        try:
            return self._received(frame)
        except (InvalidRequest, SaslFailed) as e:
            return Authentication([], str(e))

    def _received(self, frame: bytes) -> Authentication:
        if self._state is _State.AUTHENTICATE and self._has_bare_tokens:
            token = self._evaluate(frame)
            return Authentication([_SIZE.pack(len(token)) + token])
        key = _KEY.unpack_from(frame)[0] if len(frame) >= _KEY.size else None
        if key not in (API_VERSIONS.key, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key):
            raise InvalidRequest(
                f"a request with the API key {key} of a client that has not authenticated: SASL is required here"
            )
        request = read_request(frame)
        if isinstance(request, UnknownApiVersions):
            return self._unknown_versions(request)
        if self._state is _State.AUTHENTICATE:
            return self._authenticate(request)
        return self._versions(request) if key == API_VERSIONS.key else self._handshake(request)

    def _unknown_versions(self, request: UnknownApiVersions) -> Authentication:
        if self._state is not _State.HANDSHAKE_OR_VERSIONS:
            raise SaslFailed("an ApiVersions request after another one")
        return Authentication(unknown_api_versions(request.correlation_id))

    def _versions(self, request: Request) -> Authentication:
        if self._state is not _State.HANDSHAKE_OR_VERSIONS:
            raise SaslFailed("an ApiVersions request after another one")
        self._state = _State.HANDSHAKE
        return Authentication(write_response(request.header, api_versions(request.message, request.header.version, self.apis)))

    def _handshake(self, request: Request) -> Authentication:
        if request.header.api is not SASL_HANDSHAKE:
            raise SaslFailed("a SaslAuthenticate request before SaslHandshake")
        mechanism, enabled = request.message.mechanism, tuple(self.config.mechanisms)
        if mechanism not in enabled:
            refusal = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, enabled)
            wanted = f"the client asks for the SASL mechanism {mechanism!r}, and {', '.join(enabled)} are enabled"
            return Authentication(write_response(request.header, refusal), wanted)
        self._server, self._asked_mechanism = self.config.mechanisms[mechanism](), mechanism
        self._has_bare_tokens = request.header.version == 0
        self._state = _State.AUTHENTICATE
        return Authentication(write_response(request.header, SaslHandshakeResponse(mechanisms=enabled)))

    def _authenticate(self, request: Request) -> Authentication:
        if request.header.api is not SASL_AUTHENTICATE:
            of = ApiVersionsResponse if request.header.api is API_VERSIONS else SaslHandshakeResponse
            refusal = write_response(request.header, of(ErrorCode.ILLEGAL_SASL_STATE))
            return Authentication(refusal, f"a {request.header.api.name} request amid the exchange of tokens")
        try:
            token = self._evaluate(request.message.auth_bytes)
        except SaslFailed as e:
            told = e.told or self._general_problem()
            failed = SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, told)
            return Authentication(write_response(request.header, failed), f"{self._asked_mechanism}: {e.problem}")
        lifetime_ms = 0 if self._expires_ms is None or self._state is not _State.COMPLETE else self._lifetime_ms(self._expires_ms)
        answer = SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
        return Authentication(write_response(request.header, answer))

    def _general_problem(self) -> str:
        what = "authentication" if self.principal is None else "re-authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._asked_mechanism}"

    def _lifetime_ms(self, expires_ms: int) -> int:
        return max(0, expires_ms - self.clock.hi_res_clock_ms())

    def _evaluate(self, token: bytes) -> bytes:
        server = self._server
        assert server is not None
        if self._mechanism not in ("", self._asked_mechanism):
            problem = f"the client authenticated with {self._mechanism} before, and must do so again"
            raise SaslFailed(problem, is_told=True)
        answer = server.evaluate(token)
        if server.name is not None:
            self._complete(KafkaPrincipal(server.name), server.expires_ms)
        return answer

    def _complete(self, principal: KafkaPrincipal, credential_expires_ms: int | None) -> None:
        if self.principal not in (None, principal):
            raise SaslFailed(
                f"Cannot change principals during re-authentication from {self.principal}: {principal}", is_told=True
            )
        lifetimes_ms = [] if credential_expires_ms is None else [max(0, credential_expires_ms - self.clock.now_ms())]
        if self.config.max_reauth_ms > 0:
            lifetimes_ms.append(self.config.max_reauth_ms)
        self.principal, self._mechanism = principal, self._asked_mechanism
        self._expires_ms = self.clock.hi_res_clock_ms() + min(lifetimes_ms) if lifetimes_ms else None
        self._state, self._server = _State.COMPLETE, None
