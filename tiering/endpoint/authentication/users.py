"""The file of users: what is kept of their passwords, as Kafka keeps it.

    {"format": 1, "users": {"alice": {"SCRAM-SHA-512": "salt=…,stored_key=…,server_key=…,iterations=8192"}}}

The texts are those of Kafka's ScramCredentialUtils. The file is read again when it has changed.
"""

import hmac
import json
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from local_log.disk import Disk, WritableDisk
from local_log.errors import Corrupt, Newer
from local_log.formats.primitives import Buffer
from tiering.endpoint.authentication.scram import ITERATIONS, MECHANISMS, SALT_BYTES, ScramCredential
from tiering.endpoint.protocol.messages import scram_credentials as messages
from tiering.endpoint.protocol.messages.scram_credentials import ITERATIONS_MAX, ITERATIONS_MIN
from tiering.endpoint.watched_file import ChangingFile, changing, replace_watched

FORMAT: Final = 1
_PRIVATE: Final = 0o600

Credentials = Mapping[str, ScramCredential]
"""Of one user, by mechanism."""


def read_users(data: Buffer) -> dict[str, Credentials]:
    """The users of a file. Raises Corrupt, Newer."""
    try:
        content = json.loads(bytes(data))
        if content["format"] > FORMAT:
            raise Newer(f"a file of users of format {content['format']}, and this version reads {FORMAT} at most; upgrade")
        users: dict[str, Credentials] = {
            str(name): {str(mechanism): _credential(text) for mechanism, text in body.items()}
            for name, body in content["users"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f"not a file of users ({type(e).__name__}); `tiering users` makes one") from e
    unknown = {mechanism for body in users.values() for mechanism in body} - MECHANISMS.keys()
    if unknown:
        raise Corrupt(f"users have credentials for {min(unknown)!r}, which is not {' or '.join(MECHANISMS)}")
    return users


def write_users(users: Mapping[str, Credentials]) -> bytes:
    """The bytes of the file."""
    body = {name: {mechanism: _text(one) for mechanism, one in sorted(of.items())} for name, of in sorted(users.items())}
    return json.dumps({"format": FORMAT, "users": body}, indent=1).encode() + b"\n"


def save_users(disk: WritableDisk, path: str, users: Mapping[str, Credentials]) -> None:
    """Replaces the file by one that nobody else may read. Raises LogError, OSError."""
    replace_watched(disk, path, write_users(users), _PRIVATE)


def _credential(text: str) -> ScramCredential:
    fields = dict(part.split("=", 1) for part in text.split(","))
    salt, stored_key, server_key = (b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key"))
    iterations = int(fields["iterations"])
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ValueError(f"{iterations} iterations")
    return ScramCredential(salt, stored_key, server_key, iterations)


def _text(of: ScramCredential) -> str:
    values = {"salt": of.salt, "stored_key": of.stored_key, "server_key": of.server_key}
    return ",".join(f"{name}={b64encode(value).decode()}" for name, value in values.items()) + f",iterations={of.iterations}"


@dataclass(slots=True)
class UserFile:
    """The users of the file at `path`, for many threads. What asks raises Corrupt, Newer, Unreadable, NotFound.

    Names that nobody has are answered for as if somebody had them, so that a client cannot find out who is a user: `secret`,
    random bytes, decides what they are answered with.
    """

    disk: Disk
    writable: WritableDisk
    path: str
    secret: bytes = field(repr=False)
    _file: ChangingFile[dict[str, Credentials]] = field(init=False, repr=False)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._file = ChangingFile(self.disk, self.path, read_users)

    def users(self) -> dict[str, Credentials]:
        """All users, as the file says now."""
        return self._file.now()

    def iterations(self) -> dict[str, dict[str, int]]:
        """By user and mechanism."""
        return {name: {of: one.iterations for of, one in body.items()} for name, body in self.users().items()}

    def change(
        self, deletions: Iterable[messages.ScramCredentialDeletion], upsertions: Iterable[messages.ScramCredentialUpsertion]
    ) -> None:
        """Writes the file anew without some credentials and with others. Raises LogError, OSError; nothing has changed then."""
        with self._changing, changing(self.writable, self.path):
            users = {name: dict(of) for name, of in self.users().items()}
            for gone in deletions:
                users.get(gone.name, {}).pop(messages.MECHANISMS[gone.mechanism], None)
            for kept in upsertions:
                name = messages.MECHANISMS[kept.mechanism]
                credential = ScramCredential.of_salted(MECHANISMS[name], kept.salted_password, kept.salt, kept.iterations)
                users.setdefault(kept.name, {})[name] = credential
            save_users(self.writable, self.path, {name: of for name, of in users.items() if of})

    def credential(self, mechanism: str, name: str) -> ScramCredential:
        """A user's credential, or one that no password fits."""
        users = self.users()
        found = users.get(name, {}).get(mechanism)
        if found is not None:
            return found
        others = (of[mechanism].iterations for of in users.values() if mechanism in of)
        salt, key = (hmac.digest(self.secret, f"{purpose} {mechanism} {name}".encode(), "sha512") for purpose in ("salt", "key"))
        stored_key = MECHANISMS[mechanism].hash(key)
        return ScramCredential(salt[:SALT_BYTES], stored_key, key, next(others, ITERATIONS))

    def has_password(self, name: str, password: str) -> bool:
        """Whether there is such a user with this password."""
        users = self.users()
        mine = users.get(name) or next(iter(users.values()), {})
        mechanism = next(iter(mine), next(iter(MECHANISMS)))
        is_right = self.credential(mechanism, name).has_password(MECHANISMS[mechanism], password)
        return is_right and name in users
