"""Whether a JSON Web Token is valid, and whom it is for, as Kafka's ValidatorAccessTokenValidator finds it."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from remote.clock import Clock
from tiering.endpoint.authentication.oauthbearer import VerifiedToken
from tiering.endpoint.authentication.sasl_server import SaslFailed

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures whose keys may be public. Neither none nor HMAC, with which a public key would be the secret."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must have: `sasl.oauthbearer.expected.issuer` and so on."""

    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    name_claim: str = "sub"
    clock_skew_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class TokenVerifier:
    """For many threads. `keys` gives those of the provider; it is told the id of the one that is wanted."""

    keys: Callable[[object], KeySet]
    rules: TokenRules
    clock: Clock

    def verify(self, token: str) -> VerifiedToken:
        """Raises SaslFailed, and LogError if the keys are not to be had."""
        kid = _key_id(token)
        keys = self.keys(kid)
        try:
            claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
        except (JoseError, ValueError, TypeError, KeyError) as e:
            raise SaslFailed(f"a token that is not signed by a key of the provider ({type(e).__name__})") from e
        return self._checked(claims)

    def _checked(self, claims: dict[str, Any]) -> VerifiedToken:
        rules, now_ms = self.rules, self.clock.now_ms()
        expires_ms, issued_ms = _ms(claims, "exp"), _ms(claims, "iat")
        if expires_ms is None or issued_ms is None:
            raise SaslFailed("a token without the time of its issue or expiry (iat, exp)")
        if now_ms - rules.clock_skew_ms >= expires_ms:
            raise SaslFailed("a token that has expired")
        from_ms = _ms(claims, "nbf") if "nbf" in claims else issued_ms
        if from_ms is None:
            raise SaslFailed("a token whose nbf is no time")
        if max(issued_ms, from_ms) > now_ms + rules.clock_skew_ms:
            raise SaslFailed("a token that is not valid yet")
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise SaslFailed("a token of another issuer")
        if rules.audiences and not set(rules.audiences) & _audiences(claims):
            raise SaslFailed("a token for another audience")
        name = claims.get(rules.name_claim)
        if not isinstance(name, str) or not name.strip():
            raise SaslFailed(f"a token that does not say whom it is for ({rules.name_claim})")
        return VerifiedToken(name.strip(), expires_ms)


def _key_id(token: str) -> object:
    """What the token's header says, before anything is verified; None if it does not."""
    header = token.partition(".")[0]
    try:
        return json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4))).get("kid")
    except (ValueError, AttributeError, RecursionError):
        return None


def _audiences(claims: dict[str, Any]) -> set[str]:
    """Those that a token is for: none if the claim is neither a text nor a list."""
    value = claims.get("aud")
    return {one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)}


def _ms(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    return int(value * 1000) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 43 else None
