"""A file of users whose passwords tests know, and a listener that asks for them."""

from pathlib import Path

from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authentication.authenticator import SaslConfig
from tiering.endpoint.authentication.listener import Listener
from tiering.endpoint.authentication.plain import PlainServer
from tiering.endpoint.authentication.scram import MECHANISMS, ScramCredential, ScramServer
from tiering.endpoint.authentication.users import UserFile, write_users
from tiering.endpoint.request_context import SecurityProtocol

PASSWORDS = {"alice": "in wonderland", "bob": "the builder"}


def user_file(folder: Path) -> UserFile:
    """A file in the folder."""
    path = folder / "users.json"
    kept = {
        name: {of.name: ScramCredential.of(of, password, name.encode(), 4096) for of in MECHANISMS.values()}
        for name, password in PASSWORDS.items()
    }
    path.write_bytes(write_users(kept))
    return UserFile(OsDisk(), OsWritableDisk(), str(path), b"secret")


def sasl_listener(users: UserFile, protocol: SecurityProtocol = SecurityProtocol.SASL_PLAINTEXT) -> Listener:
    """With PLAIN and both SCRAM mechanisms."""

    def scram(name: str) -> ScramServer:
        return ScramServer(
            MECHANISMS[name], lambda user: users.credential(name, user), "a nonce of the server's".replace(" ", "-")
        )

    mechanisms = {"PLAIN": lambda: PlainServer(users.has_password)}
    mechanisms |= {name: (lambda name=name: scram(name)) for name in MECHANISMS}
    return Listener(protocol, SaslConfig(mechanisms))
