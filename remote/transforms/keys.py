"""Key-encryption keys: they wrap the data key of each segment, so that the manifest can store it."""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from local_log.errors import Invalid, NoKey, WrongKey, listed
from remote.clock import Randomness
from remote.transforms.encryption import DATA_KEY_BYTES

KEY_BYTES = 32
KEY_ID_BYTES_MAX = 2048


class KeyRing(Protocol):
    """Wraps and unwraps data keys. Thread-safe. Key ids are not secret: manifests and messages contain them."""

    @property
    def current(self) -> str:
        """The id of the key that new data keys are wrapped with."""

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        """Wraps a data key with the key `key_id`. Raises NoKey, Unavailable, Invalid."""

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """Unwraps a data key. Raises NoKey (the ring lacks the key), WrongKey (another key has wrapped it), Unavailable."""


@dataclass(frozen=True, slots=True)
class LocalKeyRing:
    """A key ring in memory. Wraps data keys with AES key wrap (RFC 3394), which needs no nonce and detects a wrong key.

    `place` names the source of the keys in messages.
    """

    place: str
    current: str
    keys: Mapping[str, bytes] = field(repr=False)

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        """The result has 40 bytes for a data key of 32."""
        from cryptography.hazmat.primitives.keywrap import aes_key_wrap  # a start without keys does not wait for it

        return aes_key_wrap(self._key(key_id), data_key)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap

        try:
            return aes_key_unwrap(self._key(key_id), wrapped)
        except InvalidUnwrap as e:
            raise WrongKey(key_id, self.place) from e

    def _key(self, key_id: str) -> bytes:
        if key_id not in self.keys:
            raise NoKey(key_id, f"{self.place} has {listed(sorted(self.keys))}")
        return self.keys[key_id]


def read_key_ring(text: str | bytes, place: str) -> LocalKeyRing:
    """The keys of a JSON object such as this; a key is base64 of 32 random bytes. Raises Invalid, which names no key's bytes.

    {"current": "2026-02", "keys": {"2026-01": "q83v…=", "2026-02": "EjRW…="}}
    """
    try:
        return _key_ring(json.loads(text, object_pairs_hook=_without_duplicates), place)
    except _InvalidKeyRing as e:
        found = str(e)
    except (ValueError, RecursionError):
        found = "not JSON"  # the text itself may be a secret
    form = '{"current": ID, "keys": {ID: base64 of 32 bytes, …}}'
    raise Invalid(f"{place}: {found}; give {form}")


class _InvalidKeyRing(Exception):
    """The defect of a key ring, without its secrets."""


def _key_ring(value: Any, place: str) -> LocalKeyRing:
    if not isinstance(value, dict) or value.keys() != {"current", "keys"} or not isinstance(value["keys"], dict):
        raise _InvalidKeyRing("not an object of current and keys")
    keys = {key_id: _key(key_id, key) for key_id, key in value["keys"].items()}
    if not isinstance(value["current"], str) or value["current"] not in keys:
        raise _InvalidKeyRing("current names none of keys")
    return LocalKeyRing(place, value["current"], keys)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise _InvalidKeyRing(f"{next(n for n in names if names.count(n) > 1)!r} is there twice")
    return dict(pairs)


def _key(key_id: str, text: object) -> bytes:
    if not key_id or not key_id.isprintable() or len(key_id.encode()) > KEY_ID_BYTES_MAX:
        raise _InvalidKeyRing("a key id is empty, too long or not printable")
    try:
        key = b64decode(text, validate=True) if isinstance(text, str) else b""
    except (Base64Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise _InvalidKeyRing(f"key {key_id!r} is not base64 of {KEY_BYTES} bytes")
    return key


def check_key_ring(keys: KeyRing, randomness: Randomness) -> None:
    """Wraps and unwraps an unused data key, so that a defect of the key ring is found before any upload.

    Raises NoKey, WrongKey, Unavailable, Invalid.
    """
    data_key = randomness.random_bytes(DATA_KEY_BYTES)
    if keys.unwrap(keys.current, keys.wrap(keys.current, data_key)) != data_key:
        raise WrongKey(keys.current, "the key ring, which unwraps another data key than it has wrapped")
