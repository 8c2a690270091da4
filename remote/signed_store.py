"""A store wrapper that signs manifests and write records when they are put and verifies them when they are read.

With keys, every commit is signed, and what is not signed is rejected (`NotSigned`). Where the archive is older than the
signing, `plain_allowed` accepts unsigned objects; signed ones are still verified. A signature covers one key and body, so
whoever can write to the bucket can still roll a partition back, by deleting its newer versions. `seen` detects this: it keeps
the newest version that was read of each partition, and an older one in its place raises `RolledBack`.
"""

import hashlib
from collections.abc import Iterable, Iterator
from hmac import compare_digest
from typing import Protocol

from local_log.errors import Corrupt, NoKey, NotFound, WrongKey
from remote.clock import Randomness, SystemRandomness
from remote.keys import PartitionPath, manifest_of, partition_of, write_of
from remote.manifest.signatures import MAC_KEY_BYTES, NotSigned, Signature, mac_of, signed, split
from remote.manifest.stamped_json import REMEDY, read_json
from remote.store.api import AbandonedUpload, Body, ObjectMeta, ObjectStore
from remote.transforms.key_rings import allows_plain, open_keys
from remote.transforms.keys import KeyRing

_randomness = SystemRandomness()


class RolledBack(Corrupt):
    """A partition's manifest was rolled back: an older version is in the place of one that was read before."""


class SeenVersions(Protocol):
    """Persistent values by name, letters and digits only; they may be lost. `remote.read.cache_files.CacheFiles` is one."""

    def get(self, name: str) -> bytes | None:
        """The value that was put last, or None."""

    def put(self, name: str, body: bytes) -> None:
        """Stores a value."""


class SignedStore:
    """An `ObjectStore` wrapper. Thread-safe; two threads may at worst each make a MAC key.

    `plain_allowed` accepts unsigned objects, `unverified_allowed` those that were signed with a key which `keys` lacks.
    """

    def __init__(
        self,
        inner: ObjectStore,
        keys: KeyRing | None = None,
        *,
        plain_allowed: bool = False,
        unverified_allowed: bool = False,
        seen: SeenVersions | None = None,
        randomness: Randomness = _randomness,
    ) -> None:
        self.url = inner.url
        self._inner = inner
        self._keys = keys
        self._plain_allowed = plain_allowed
        self._unverified_allowed = unverified_allowed
        self._seen = seen
        self._randomness = randomness
        self._mac_keys: dict[tuple[str, bytes], bytes] = {}
        """Unwrapped MAC keys by key id and wrapped form; the key ring unwraps each only once."""

    def signing_key_id(self) -> str:
        return "" if self._keys is None else self._signing(self._keys)[0]

    def get(self, key: str) -> bytes:
        """Also verifies the signature of a manifest or write record.

        Raises Corrupt, NotSigned, RolledBack, NoKey, WrongKey.
        """
        body = self._inner.get(key)
        at = manifest_of(key)
        if at is None and write_of(key) is None:
            return body
        signature = self._checked(key, body)
        if at is not None and self._seen is not None:
            self._remember(self._seen, *at, signature)
        return body

    def put_if_absent(self, key: str, body: Body) -> None:
        """Also signs manifests and write records, if there are keys."""
        if self._keys is not None and (manifest_of(key) is not None or write_of(key) is not None):
            key_id, mac_key, wrapped = self._signing(self._keys)
            unsigned = bytes(body)
            body = signed(unsigned, Signature(key_id, wrapped, mac_of(mac_key, key, unsigned)))
        self._inner.put_if_absent(key, body)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """Also raises RolledBack if a partition's newest manifest is older than one that was seen."""
        found = self._inner.list(prefix, limit=limit, start_after=start_after)
        path = partition_of(prefix)
        if self._seen is None or start_after or path is None or prefix != path.manifests:
            return found
        return self._held(found, path, _remembered(self._seen, self.url, path)[0])

    def _held(self, found: Iterator[ObjectMeta], path: PartitionPath, version: int) -> Iterator[ObjectMeta]:
        newest, others = 0, False
        for meta in found:
            at = manifest_of(meta.key)
            others = others or at is None
            if at is not None and not newest:
                newest = at[1]
                self._refuse_older(path, newest, version)
            yield meta
        if not newest and not others:
            self._refuse_older(path, 0, version)

    def _refuse_older(self, path: PartitionPath, newest: int, version: int) -> None:
        """Raises RolledBack if the version that was seen is gone. A listing may lag behind, so its object is asked for, too."""
        if newest >= version or self._is_there(path, version):
            return
        raise RolledBack(
            f"version {newest} is the newest, and version {version} was there before: what came after it was deleted. Bring it "
            "back by the store's own versions; or, where you have put an older copy in its place, delete the folder where the "
            "newest versions are remembered",
            file=path.manifest(version),
        )

    def _is_there(self, path: PartitionPath, version: int) -> bool:
        try:
            self._inner.head(path.manifest(version))
        except NotFound:
            return False
        return True

    def _checked(self, key: str, body: bytes) -> Signature | None:
        try:
            unsigned, signature = split(body)
        except ValueError as e:
            raise Corrupt(f"{e}; {REMEDY}", file=key) from e
        if self._keys is None:
            return signature
        if signature is None:
            if self._plain_allowed:
                return None
            read_json(body, key)  # what was cut short has lost its signature, and is to be brought back, not signed
            raise NotSigned(
                "it is not signed, and may come from anybody who can write there. If the archive is older than signatures, sign "
                "it with tiering rotate-keys --allow-plain, or accept it with --allow-plain "
                "(archive.encryption.required=false)",
                file=key,
                body=body,
            )
        mac_key = self._unwrapped(self._keys, key, signature)
        if mac_key is not None and not compare_digest(mac_of(mac_key, key, unsigned), signature.mac):
            problem = "its signature is invalid: it was changed, or moved here from elsewhere"
            raise Corrupt(f"{problem}; {REMEDY}", file=key)
        return signature

    def _unwrapped(self, keys: KeyRing, key: str, signature: Signature) -> bytes | None:
        name = signature.key_id, signature.wrapped_key
        if name not in self._mac_keys:
            try:
                self._mac_keys[name] = keys.unwrap(*name)
            except (NoKey, WrongKey) as e:
                if self._unverified_allowed:
                    return None
                if isinstance(e, WrongKey):
                    raise WrongKey(e.key_id, e.place, key) from e
                raise NoKey(e.key_id, e.reason, key) from e
        return self._mac_keys[name]

    def _signing(self, keys: KeyRing) -> tuple[str, bytes, bytes]:
        """Key id, MAC key and wrapped MAC key under the ring's current key; makes one if there is none."""
        current = keys.current
        for (key_id, wrapped), mac_key in tuple(self._mac_keys.items()):
            if key_id == current:
                return key_id, mac_key, wrapped
        known = next(iter(tuple(self._mac_keys.values())), None)
        mac_key = self._randomness.random_bytes(MAC_KEY_BYTES) if known is None else known
        wrapped = keys.wrap(current, mac_key)
        self._mac_keys[current, wrapped] = mac_key
        return current, mac_key, wrapped

    def _remember(self, seen: SeenVersions, path: PartitionPath, version: int, signature: Signature | None) -> None:
        before, mac = _remembered(seen, self.url, path)
        now = signature.mac if signature else ""
        if version == before and mac and now != mac:
            problem = f"it is another version {version} than the one that was there before"
            raise RolledBack(f"{problem}; {REMEDY}", file=path.manifest(version))
        if version > before:
            seen.put(_name(self.url, path), f"{version} {now}".encode())

    def get_range(self, key: str, start: int, end: int) -> Body:
        return self._inner.get_range(key, start, end)

    def head(self, key: str) -> ObjectMeta:
        return self._inner.head(key)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self._inner.list_folders(prefix)

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        self._inner.upload(key, parts, size=size, crc32c=crc32c)

    def delete(self, key: str) -> None:
        self._inner.delete(key)

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        return self._inner.abandoned_uploads(prefix, before_ms)

    def abort_upload(self, upload: AbandonedUpload) -> None:
        self._inner.abort_upload(upload)


def trusted(
    store: ObjectStore, keys_address: str | None, seen: SeenVersions | None = None, *, unverified_allowed: bool = False
) -> ObjectStore:
    """Wraps the store if there is a keys address or `seen`; returns it unchanged otherwise.

    Raises Invalid, BadAddress if the keys cannot be opened.
    """
    if keys_address is None:
        return store if seen is None else SignedStore(store, seen=seen)
    plain_allowed = allows_plain(keys_address)
    return SignedStore(
        store, open_keys(keys_address), plain_allowed=plain_allowed, unverified_allowed=unverified_allowed, seen=seen
    )


def _name(url: str, path: PartitionPath) -> str:
    return hashlib.sha256(f"{url}\0{path.prefix}".encode()).hexdigest()[:32]


def _remembered(seen: SeenVersions, url: str, path: PartitionPath) -> tuple[int, str]:
    """The newest version that was seen, and its MAC; version 0 for none."""
    version, _, mac = (seen.get(_name(url, path)) or b"0").decode(errors="replace").partition(" ")
    return (int(version), mac) if version.isascii() and version.isdigit() else (0, "")
