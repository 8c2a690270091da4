"""OAUTHBEARER (RFC 7628): the client sends a token that an identity provider has signed.

    n,[a=AUTHZID],^Aauth=Bearer TOKEN^A[NAME=VALUE^A…]^A

A token that is refused is answered with a JSON text, upon which the client sends ^A and is refused.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tiering.endpoint.authentication.sasl_server import SaslFailed

_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_FIRST: Final = re.compile(rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01")
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")
_REFUSED: Final = json.dumps({"status": "invalid_token"})


@dataclass(frozen=True, slots=True)
class VerifiedToken:
    """Whom a token is for, and when it expires."""

    name: str
    expires_ms: int


Verify = Callable[[str], VerifiedToken]
"""Reads a token. Raises SaslFailed for one that is not valid, which must not hold the token, and LogError if nobody can tell."""


@dataclass(slots=True)
class OAuthBearerServer:
    """One exchange."""

    verify: Verify
    name: str | None = None
    expires_ms: int | None = None
    _refusal: str = ""

    def evaluate(self, response: bytes) -> bytes:
        if self._refusal:
            raise SaslFailed(self._refusal, told=_REFUSED)
        found = _FIRST.fullmatch(response.decode("utf-8", "replace"))
        if found is None:
            raise SaslFailed("not the first message of an OAUTHBEARER client")
        pairs = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None or auth["scheme"].lower() != "bearer":
            raise SaslFailed("an OAUTHBEARER client that sends no bearer token")
        try:
            token = self.verify(auth["token"])
        except SaslFailed as e:
            self._refusal = e.problem
            return _REFUSED.encode()
        if found["authzid"] not in (None, token.name):
            problem = (
                "Authentication failed: Client requested an authorization id that is different from the token's principal name"
            )
            raise SaslFailed(problem, is_told=True)
        self.name, self.expires_ms = token.name, token.expires_ms
        return b""
