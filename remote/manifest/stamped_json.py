"""JSON objects as the archive stores them: a format version, sorted keys, and a CRC-32C as the last field but the signature."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from local_log.errors import Corrupt, Newer
from local_log.formats.checksum import crc32c
from remote.manifest import signatures
from remote.manifest.numbers import whole
from remote.manifest.signatures import Signature

MAJOR = 1

MINOR = 1

SIGNED_MAJOR = 2

MANIFEST_BYTES_MAX = 256 << 20

_CHECKSUM = "~crc32c"

REMEDY = "restore it from a copy or the store's own versions, and delete nothing"

_STAMP = b',"~crc32c":"%08x"}\n'


def sha256(body: bytes) -> str:
    """The hash by which a version names its parent: of what is stored, without its signature."""
    with suppress(ValueError):  # who decodes it finds what is wrong with a signature
        body, _ = signatures.split(body)
    return hashlib.sha256(body).hexdigest()


def stamped(value: Mapping[str, Any]) -> bytes:
    """A JSON object as it is stored, with its checksum as the last field."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()[:-1]
    return text + _STAMP % crc32c(text)


def read_stamped(body: bytes, key: str) -> dict[str, Any]:
    """The JSON object stored under `key` without its checksum and signature. Raises Corrupt, Newer."""
    return read_signed(body, key)[0]


def read_signed(body: bytes, key: str) -> tuple[dict[str, Any], Signature | None]:
    """The same, and the signature, which is not held against anything here."""
    try:
        body, signature = signatures.split(body)
    except ValueError as e:
        raise Corrupt(f"{e}; {REMEDY}", file=key) from e
    return _read_stamped(body, key, SIGNED_MAJOR if signature else MAJOR), signature


def _read_stamped(body: bytes, key: str, major_max: int) -> dict[str, Any]:
    value = read_json(body, key)
    check_format(value, key, major_max)
    if value.pop(_CHECKSUM, None) is None:
        if not _is_unstamped(value):
            raise Corrupt(f"{_CHECKSUM} is missing; {REMEDY}", file=key)
        return value
    text, stamp = body[: -len(_STAMP % 0)], body[-len(_STAMP % 0) :]
    if stamp != _STAMP % crc32c(text):
        raise Corrupt(f"its CRC-32C is {crc32c(text):08x}, which is not what it ends in; {REMEDY}", file=key)
    return value


def _is_unstamped(value: Mapping[str, Any]) -> bool:
    """Whether it is from before there were checksums, and pages."""
    return bool(value["format"].get("minor") == 0)


def read_json(body: bytes, key: str) -> dict[str, Any]:
    """A stored JSON object. Raises Corrupt for anything else."""
    if len(body) > MANIFEST_BYTES_MAX:
        raise Corrupt(f"{len(body)} bytes where at most {MANIFEST_BYTES_MAX} can be; {REMEDY}", file=key)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise Corrupt(f"not JSON: {e}; {REMEDY}", file=key) from e
    if not isinstance(value, dict):
        raise Corrupt(f"not a JSON object; {REMEDY}", file=key)
    return value


def check_format(value: Mapping[str, Any], key: str, major_max: int = MAJOR) -> None:
    """Raises Newer unless the object under `key` is of a format that we know, Corrupt where it states none."""
    form = value.get("format")
    major = form.get("major") if isinstance(form, dict) else None
    try:
        major = whole(major, "major")
    except (TypeError, ValueError) as e:
        raise Corrupt(f"no format version ({e}); {REMEDY}", file=key) from e
    if major > major_max:
        raise Newer(f"{key} is of format {major}; this version reads up to {major_max}: upgrade kafka-tiering")
