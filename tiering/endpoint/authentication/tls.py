"""TLS of a listener: its certificate, what is asked of the clients', and who they are by it.

The files are PEM. They are read again when they change: clients that connect later meet the new ones, and connections live on.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from local_log.disk import Disk
from local_log.errors import Invalid, LogError
from local_log.file_range import FileState
from tiering.endpoint.authentication.distinguished_name import subject_of
from tiering.endpoint.authentication.principal_mapping import PrincipalMapping
from tiering.endpoint.authentication.sasl_server import SaslFailed
from tiering.endpoint.request_context import ANONYMOUS, KafkaPrincipal

if TYPE_CHECKING:
    import socket

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """The files and rules of a listener. `key` may be the same file as `certificates`, the chain from the server's own on."""

    certificates: str
    key: str
    trusted: str | None = None
    client_auth: str = "none"
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    mapping: PrincipalMapping = PrincipalMapping()  # noqa: RUF009  # it is immutable

    @property
    def files(self) -> tuple[str, ...]:
        """All files."""
        return tuple(dict.fromkeys((self.certificates, self.key, *((self.trusted,) if self.trusted else ()))))


@dataclass(slots=True)
class Tls:
    """The context of new connections. `report` is told of files that cannot be used."""

    config: TlsConfig
    disk: Disk
    report: Callable[[str], object]
    _context: ssl.SSLContext = field(init=False)
    _states: tuple[FileState, ...] = ()

    def __post_init__(self) -> None:
        self._states = self._files()
        self._context = _context(self.config)

    def wrap(self, accepted: "socket.socket") -> ssl.SSLSocket:
        """The socket with TLS, whose handshake is to come."""
        self._renew()
        return self._context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)

    def principal(self, of: ssl.SSLSocket) -> KafkaPrincipal:
        """Who a client is by its certificate, ANONYMOUS without one. Raises SaslFailed."""
        certificate = of.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        try:
            subject = subject_of(certificate)
        except ValueError as e:
            raise SaslFailed(f"the subject of the client's certificate cannot be read: {e}") from e
        return KafkaPrincipal(self.config.mapping.name(subject))

    def _renew(self) -> None:
        try:
            states = self._files()
            if states == self._states:
                return
            self._states = states  # what cannot be used is told once, and looked at again when it changes
            self._context = _context(self.config)
        except LogError as e:
            self.report(f"TLS goes on with the certificates of before: {e}")

    def _files(self) -> tuple[FileState, ...]:
        return tuple(self.disk.state(file) for file in self.config.files)


def _context(config: TlsConfig) -> ssl.SSLContext:
    """Raises Invalid for files that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    known = [VERSIONS[name] for name in VERSIONS if name in config.versions]
    context.minimum_version, context.maximum_version = known[0], known[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(config.certificates, config.key, password=_refuse_to_ask)
        if config.trusted is not None:
            context.load_verify_locations(config.trusted)
    except (OSError, ValueError) as e:
        problem = f"{e.reason or e}" if isinstance(e, ssl.SSLError) else f"{e}"
        raise Invalid(
            f"{', '.join(config.files)}: {problem}; expected PEM: a certificate chain from the server's own on, its private key "
            "without a password, and certificates of authorities that clients' are signed with"
        ) from e
    context.verify_mode = CLIENT_AUTH[config.client_auth]
    return context


def _refuse_to_ask() -> str:
    raise ValueError("the private key has a password")
