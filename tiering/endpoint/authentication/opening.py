"""A listener out of settings and files: who it lets in, and whether others than this host may be let near it."""

from collections.abc import Callable
from typing import Final

from local_log.errors import Invalid
from tiering.endpoint.authentication.listener import Listener, sasl_config
from tiering.endpoint.authentication.principal_mapping import PrincipalMapping
from tiering.endpoint.authentication.tls import Tls, TlsConfig
from tiering.endpoint.authentication.users import UserFile
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.settings import (
    SASL_MECHANISMS,
    SSL_CLIENT_AUTH,
    SSL_KEY,
    SSL_KEYSTORE,
    SSL_MAPPING,
    SSL_PROTOCOLS,
    SSL_TRUSTSTORE,
    Settings,
)
from tiering.machine import RANDOMNESS, local_disk

_SECRET_BYTES: Final = 32


def open_listener(
    protocol: SecurityProtocol, settings: Settings, users_path: str | None, report: Callable[[str], object]
) -> Listener:
    """Raises Invalid for settings that miss something or contradict each other, and LogError for files that cannot be used."""
    if protocol.is_sasl != (users_path is not None):
        raise Invalid("clients authenticate with --listen SASL_PLAINTEXT://… or SASL_SSL://… and --users: give both, or neither")
    tls = None if not protocol.is_encrypted else Tls(_tls_config(settings), local_disk(), report)
    if users_path is None:
        return Listener(protocol, None, tls)
    users = UserFile(local_disk(), users_path, RANDOMNESS.random_bytes(_SECRET_BYTES))
    users.users()
    return Listener(protocol, sasl_config(settings, users, RANDOMNESS), tls)


def exposure(protocol: SecurityProtocol, settings: Settings) -> str:
    """Why the listener's address must not be one that other hosts reach, empty if it may be."""
    if protocol is SecurityProtocol.SASL_PLAINTEXT and "PLAIN" in settings[SASL_MECHANISMS]:
        return "PLAIN sends passwords as they are; take SCRAM-SHA-512, or TLS with --listen SASL_SSL://…"
    if protocol is SecurityProtocol.PLAINTEXT:
        return "everybody there could read all topics; have clients authenticate with --listen SASL_SSL://… and --users"
    return ""


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
