"""Key-encryption keys: what wraps the data key of each segment, so that a manifest can carry it."""

import json
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from local_log.errors import Invalid, NoKey, WrongKey, listed
from remote.clock import Randomness
from remote.transforms.encryption import DATA_KEY_BYTES

KEY_BYTES = 32
KEY_ID_BYTES_MAX = 2048


class KeyRing(Protocol):
    """Wraps and unwraps data keys, for several threads at once. Key ids are no secret: manifests and messages have them."""

    @property
    def current(self) -> str:
        """The id of the key that new data keys are wrapped with."""

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        """The data key, wrapped. Raises NoKey, Unavailable, Invalid."""

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """The data key again. Raises NoKey (the ring lacks that key), WrongKey (not the one that wrapped it), Unavailable."""


@dataclass(frozen=True, slots=True)
class LocalKeyRing:
    """Keys that are at hand. Data keys are wrapped by AES key wrap (RFC 3394), which needs no nonce and notices a wrong key.

    `place` says, for messages, where the keys came from.
    """

    place: str
    current: str
    keys: Mapping[str, bytes] = field(repr=False)

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        """See KeyRing; 40 bytes for a data key of 32."""
        return aes_key_wrap(self._key(key_id), data_key)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """See KeyRing."""
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
        found = "not JSON"  # what it is instead may be a secret
    form = '{"current": ID, "keys": {ID: base64 of 32 bytes, …}}'
    raise Invalid(f"{place}: {found}; give {form}")


class _InvalidKeyRing(Exception):
    """What is wrong with a key ring, in words that tell no secret."""


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
        raise _InvalidKeyRing(f"{next(n for n in names if names.count(n) > 1)!r} stands there twice")
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
    """Wraps and unwraps a data key that is for nothing else, so that what is wrong with the keys shows before any upload.

    Raises NoKey, WrongKey, Unavailable, Invalid.
    """
    data_key = randomness.random_bytes(DATA_KEY_BYTES)
    if keys.unwrap(keys.current, keys.wrap(keys.current, data_key)) != data_key:
        raise WrongKey(keys.current, "the key ring, which unwraps another data key than it has wrapped")
