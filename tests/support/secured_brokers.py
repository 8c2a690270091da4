"""A broker with Kafka's own authorizer and users, and our endpoint with the same, each with a listener that asks who one is."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from asked_by_wire import Wire
from asked_endpoint import Endpoint
from served_endpoint import served
from users_file import PASSWORDS, sasl_listener

from local_log.os_disk import OsDisk, OsWritableDisk
from remote.clock import SystemClock
from tiering.endpoint.authentication.users import UserFile
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.protocol.api_keys import SASL_AUTHENTICATE, SASL_HANDSHAKE
from tiering.endpoint.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tiering.endpoint.protocol.messages.sasl_handshake import SaslHandshakeRequest

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SUPER_USER = "User:ANONYMOUS"
_MODULES = "org.apache.kafka.common.security"


def settings(port: int) -> dict[str, str]:
    """A broker's settings: everybody without a name may do everything, and others authenticate on another port."""
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    plain = f"{_MODULES}.plain.PlainLoginModule required {users};"
    of_mechanism = {"PLAIN": plain} | dict.fromkeys(MECHANISMS[1:], f"{_MODULES}.scram.ScramLoginModule required;")
    listeners = f"PLAINTEXT://127.0.0.1:{{port}},SASL://127.0.0.1:{port}"
    return {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{{controller}}",
        "advertised_listeners": listeners,
        "listener_security_protocol_map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "connection_failed_authentication_delay_ms": "0",
        "sasl_enabled_mechanisms": ",".join(MECHANISMS),
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": SUPER_USER,
    } | {f"listener.name.sasl.{name.lower()}.sasl.jaas.config": text for name, text in of_mechanism.items()}


def authorize(endpoint: Endpoint, folder: Path) -> None:
    """Gives the endpoint a file of ACLs, which has none."""
    path = folder / "acls.json"
    path.write_bytes(write_acls([]))
    acls = AclFile(
        OsDisk(),
        OsWritableDisk(),
        str(path),
        SystemClock(),
        Authorizer(super_users=frozenset({SUPER_USER})),
        endpoint.said.append,
    )
    acls.load()
    endpoint.context = replace(endpoint.context, acls=acls)


@contextmanager
def asking_who(endpoint: Endpoint, users: UserFile) -> Iterator[str]:
    """The address of the endpoint's other listener."""
    with served(endpoint, sasl_listener(users), failed_authentication_delay_ms=0) as (host, port):
        yield f"{host}:{port}"


def log_in(wire: Wire, name: str = "alice") -> None:
    """Says who one is by PLAIN."""
    shaken = wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    found = wire.ask(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(f"\0{name}\0{PASSWORDS[name]}".encode()))
    assert (shaken.error_code, found.error_code) == (0, 0)
