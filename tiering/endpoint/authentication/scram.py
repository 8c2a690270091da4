"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): the client proves that it knows the password, and never sends it.

    client-first   n,[a=AUTHZID],[m=…,]n=NAME,r=CLIENT-NONCE[,EXTENSIONS]
    server-first   r=CLIENT-NONCE SERVER-NONCE,s=SALT,i=ITERATIONS
    client-final   c=BASE64 OF THE GS2 HEADER,r=NONCE[,EXTENSIONS],p=PROOF
    server-final   v=SIGNATURE

A server keeps neither the password nor anything that lets somebody log in with it: StoredKey is the hash of the ClientKey, whose
knowledge the proof shows.
"""

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tiering.endpoint.authentication.sasl_server import SaslFailed


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """A mechanism and its hash function. Sources: RFC 7677, Kafka's ScramMechanism."""

    name: str
    hash_name: str

    def hash(self, data: bytes) -> bytes:
        """H of the RFC."""
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """HMAC of the RFC."""
        return hmac.digest(key, data, self.hash_name)


SCRAM_SHA_256: Final = ScramMechanism("SCRAM-SHA-256", "sha256")
SCRAM_SHA_512: Final = ScramMechanism("SCRAM-SHA-512", "sha512")
MECHANISMS: Final[Mapping[str, ScramMechanism]] = {one.name: one for one in (SCRAM_SHA_256, SCRAM_SHA_512)}

SALT_BYTES: Final = 24
ITERATIONS: Final = 8192


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What is kept of a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of(cls, mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> "ScramCredential":
        """Of a password."""
        salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salted, salt, iterations)

    @classmethod
    def of_salted(cls, mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> "ScramCredential":
        """Of a password that was salted and hashed so often."""
        stored_key = mechanism.hash(mechanism.hmac(salted, b"Client Key"))
        return cls(salt, stored_key, mechanism.hmac(salted, b"Server Key"), iterations)

    def has_password(self, mechanism: ScramMechanism, password: str) -> bool:
        """Whether it is of this password."""
        other = ScramCredential.of(mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(self.stored_key, other.stored_key)


CredentialOf = Callable[[str], ScramCredential]
"""The credential of a user; for a name that nobody has, one that no password fits."""

_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = r"(?:,[A-Za-z]+=[\x01-\x2b\x2d-\x7f]+)*"
_CLIENT_FIRST: Final = re.compile(
    rf"(?P<gs2>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


@dataclass(slots=True)
class ScramServer:
    """One exchange. `server_nonce` must never come again."""

    mechanism: ScramMechanism
    credential_of: CredentialOf
    server_nonce: str
    name: str | None = None
    _claimed: str = ""
    _begun: tuple[str, str, str] | None = None
    """The GS2 header, the nonce and the messages so far; None before the client's first message and after its last."""
    _credential: ScramCredential | None = None

    @property
    def expires_ms(self) -> None:
        """A password never expires."""

    def evaluate(self, response: bytes) -> bytes:
        text = _text(response)
        return self._first(text) if self._credential is None else self._final(text, self._credential)

    def _first(self, text: str) -> bytes:
        found = _CLIENT_FIRST.fullmatch(text)
        if found is None or self.name is not None:
            raise SaslFailed("not the first message of a SCRAM client without channel binding")
        if "tokenauth" in found["extensions"]:
            raise SaslFailed("a delegation token, which are not supported here: use a user's password")
        name = found["name"].replace("=2C", ",").replace("=3D", "=")
        if found["authzid"] not in (None, found["name"]):
            raise SaslFailed(
                "Authentication failed: Client requested an authorization id that is different from username", is_told=True
            )
        credential, nonce = self.credential_of(name), found["nonce"] + self.server_nonce
        first = f"r={nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
        self._claimed, self._credential = name, credential
        self._begun = (found["gs2"], nonce, f"{found['bare']},{first}")
        return first.encode()

    def _final(self, text: str, credential: ScramCredential) -> bytes:
        assert self._begun is not None
        (gs2_header, nonce, messages), self._begun, self._credential = self._begun, None, None
        found = _CLIENT_FINAL.fullmatch(text)
        if found is None:
            raise SaslFailed("not the final message of a SCRAM client")
        if found["nonce"] != nonce and found["nonce"].endswith(nonce):
            raise SaslFailed(
                "a nonce that comes twice, as librdkafka before 2.6.1 sends it: update the client, or enable PLAIN for it"
            )
        if b64decode(found["binding"]) != gs2_header.encode() or found["nonce"] != nonce:
            raise SaslFailed("the final message of a SCRAM client does not belong to its first")
        signed = f"{messages},{found['without_proof']}".encode()
        proof, signature = b64decode(found["proof"]), self.mechanism.hmac(credential.stored_key, signed)
        if len(proof) != len(signature):
            raise SaslFailed(f"a proof of {len(proof)} bytes")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(self.mechanism.hash(client_key), credential.stored_key):
            raise SaslFailed("no such user, or a wrong password")
        self.name = self._claimed
        return b"v=" + b64encode(self.mechanism.hmac(credential.server_key, signed))


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError as e:
        raise SaslFailed("a SCRAM message that is not UTF-8") from e
