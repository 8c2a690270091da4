"""A listener out of settings and files: who it lets in, and whether others than this host may be let near it."""

from collections.abc import Callable
from typing import Final

from local_log.errors import Invalid
from tiering.endpoint.authentication.listener import Listener, sasl_config
from tiering.endpoint.authentication.oauthbearer import Verify
from tiering.endpoint.authentication.principal_mapping import PrincipalMapping
from tiering.endpoint.authentication.tls import Tls, TlsConfig
from tiering.endpoint.authentication.users import UserFile
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.settings import (
    OAUTH_AUDIENCE,
    OAUTH_ISSUER,
    OAUTH_KEYS,
    OAUTH_NAME,
    OAUTH_REFRESH,
    OAUTH_SKEW,
    SASL_MECHANISMS,
    SSL_CLIENT_AUTH,
    SSL_KEY,
    SSL_KEYSTORE,
    SSL_MAPPING,
    SSL_PROTOCOLS,
    SSL_TRUSTSTORE,
    Settings,
)
from tiering.machine import CLOCK, RANDOMNESS, local_disk, writable_disk

_SECRET_BYTES: Final = 32
_OAUTHBEARER: Final = "OAUTHBEARER"
_FILE: Final = "file://"


def open_listener(
    protocol: SecurityProtocol, settings: Settings, users_path: str | None, report: Callable[[str], object]
) -> Listener:
    """Raises Invalid for settings that miss something or contradict each other, and LogError for files that cannot be used."""
    has_passwords = protocol.is_sasl and set(settings[SASL_MECHANISMS]) != {_OAUTHBEARER}
    if has_passwords != (users_path is not None):
        raise Invalid("clients authenticate with --listen SASL_PLAINTEXT://… or SASL_SSL://… and --users: give both, or neither")
    tls = None if not protocol.is_encrypted else Tls(_tls_config(settings), local_disk(), report)
    if not protocol.is_sasl:
        return Listener(protocol, None, tls)
    users = None
    if users_path is not None:
        users = UserFile(local_disk(), writable_disk(), users_path, RANDOMNESS.random_bytes(_SECRET_BYTES))
        users.users()
    verify = _verify(settings, report) if _OAUTHBEARER in settings[SASL_MECHANISMS] else None
    return Listener(protocol, sasl_config(settings, users, verify, RANDOMNESS), tls, users)


def exposure(protocol: SecurityProtocol, settings: Settings) -> str:
    """Why the listener's address must not be one that other hosts reach, empty if it may be."""
    open_mechanisms = {"PLAIN", _OAUTHBEARER} & set(settings[SASL_MECHANISMS])
    if protocol is SecurityProtocol.SASL_PLAINTEXT and open_mechanisms:
        what = "PLAIN sends passwords" if "PLAIN" in open_mechanisms else "OAUTHBEARER sends tokens"
        return f"{what} as they are; take SCRAM-SHA-512, or TLS with --listen SASL_SSL://…"
    if protocol is SecurityProtocol.PLAINTEXT:
        return "everybody there could read all topics; have clients authenticate with --listen SASL_SSL://… and --users"
    return ""


def _verify(settings: Settings, report: Callable[[str], object]) -> Verify:
    from tiering.endpoint.authentication.jwks import FetchedKeys, FileKeys, check_url, fetch  # with the library, on demand
    from tiering.endpoint.authentication.token_verifier import TokenRules, TokenVerifier

    url = settings[OAUTH_KEYS]
    if url is None:
        raise Invalid("OAUTHBEARER needs the identity provider's keys: -c sasl.oauthbearer.jwks.endpoint.url=https://…")
    if url.startswith(_FILE):
        keys = FileKeys(local_disk(), url.removeprefix(_FILE)).keys
        keys(None)
    else:
        check_url(url)
        keys = FetchedKeys(url, CLOCK, settings[OAUTH_REFRESH], report, fetch).keys
    name, skew_ms = settings[OAUTH_NAME], settings[OAUTH_SKEW] * 1000
    rules = TokenRules(settings[OAUTH_ISSUER], settings[OAUTH_AUDIENCE] or (), name, skew_ms)
    return TokenVerifier(keys, rules, CLOCK).verify


def _tls_config(settings: Settings) -> TlsConfig:
    certificates, trusted, client_auth = settings[SSL_KEYSTORE], settings[SSL_TRUSTSTORE], settings[SSL_CLIENT_AUTH]
    if certificates is None:
        raise Invalid("TLS needs a certificate: -c ssl.keystore.location=FILE, a PEM file with the chain and the private key")
    if client_auth != "none" and trusted is None:
        raise Invalid(
            f"ssl.client.auth={client_auth} needs -c ssl.truststore.location=FILE, a PEM file with the certificates of the "
            "authorities that sign those of clients"
        )
    mapping = PrincipalMapping.of(settings[SSL_MAPPING])
    return TlsConfig(certificates, settings[SSL_KEY] or certificates, trusted, client_auth, settings[SSL_PROTOCOLS], mapping)
