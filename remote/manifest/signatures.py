"""How the stored JSON of a partition is signed: by a last field `~mac`, after the checksum, which what has no keys leaves out.

    {…,"~crc32c":"89abcdef","~mac":{"key_id":"2026","mac":"<64 hexadecimal digits>","wrapped_key":"<base64>"}}

`mac` is the HMAC-SHA256 of "KTM1", the object's key in the archive, a zero byte, and the object as it would be stored unsigned.
So it holds of one version of one partition, and none can be put in another's place. Its key is 32 random bytes, wrapped by the
key `key_id` of a key ring, as data keys are. Versions name the hash of what their parent is unsigned.
"""

import hashlib
import hmac
import json
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from local_log.errors import Corrupt

MAC_KEY_BYTES = 32
FIELD_BYTES_MAX = 16 << 10
_START = b',"~mac":{'
_MAGIC = b"KTM1"
_MAC = re.compile(r"[0-9a-f]{64}")


class NotSigned(Corrupt):
    """A manifest, or a write's record, without a signature, where keys say that there has to be one; `body` is all of it."""

    def __init__(self, problem: str, *, file: str, body: bytes) -> None:
        super().__init__(problem, file=file)
        self.body = body


@dataclass(frozen=True, slots=True)
class Signature:
    """What stands in the field: which key has wrapped the MAC's key, that key wrapped, and the MAC in hexadecimal digits."""

    key_id: str
    wrapped_key: bytes
    mac: str


@runtime_checkable
class Signs(Protocol):
    """A store that signs what it is given to put."""

    def signing_key_id(self) -> str:
        """The id of the key that wraps its MAC key, "" where it does not sign. Raises NoKey, Unavailable, Invalid."""


def signing_key_of(store: object) -> str:
    """By which key a store signs, "" where it does not. Raises as `Signs`."""
    return store.signing_key_id() if isinstance(store, Signs) else ""


def mac_of(mac_key: bytes, key: str, unsigned: bytes) -> str:
    """The MAC of an object that is stored under `key`."""
    code = hmac.new(mac_key, b"".join((_MAGIC, key.encode(), b"\0")), hashlib.sha256)
    code.update(unsigned)
    return code.hexdigest()


def signed(unsigned: bytes, signature: Signature) -> bytes:
    """The stored form."""
    field = {"key_id": signature.key_id, "mac": signature.mac, "wrapped_key": b64encode(signature.wrapped_key).decode()}
    return unsigned[:-2] + b',"~mac":' + json.dumps(field, sort_keys=True, separators=(",", ":")).encode() + b"}\n"


def split(body: bytes) -> tuple[bytes, Signature | None]:
    """What is stored, unsigned, and the signature; None where there is none. Raises ValueError for one that cannot be read."""
    at = body.rfind(_START, max(0, len(body) - FIELD_BYTES_MAX))
    if at < 0:
        return body, None
    try:
        field = json.loads(body[at + len(_START) - 1 : -2])
        key_id, mac, wrapped = field["key_id"], field["mac"], b64decode(field["wrapped_key"], validate=True)
    except (TypeError, KeyError, Base64Error, RecursionError) as e:
        raise ValueError(f"its signature is no such field: {e!r}") from e
    if type(key_id) is not str or not key_id or type(mac) is not str or not _MAC.fullmatch(mac):
        raise ValueError(f"its signature is by key {key_id!r}, with the MAC {mac!r}")
    unsigned = body[:at] + b"}\n"
    if signed(unsigned, Signature(key_id, wrapped, mac)) != body:
        raise ValueError("its signature is not in the form that it is written in")
    return unsigned, Signature(key_id, wrapped, mac)
