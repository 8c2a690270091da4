"""Copies an archived segment to another partition of the same archive: the same bytes, under names and with an id of its own.

What is stored as it is, or compressed, is copied object by object. What is encrypted is bound to its partition (see
`transforms.encryption`), so it is decoded, and encoded anew under a new data key.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from local_log.errors import NoKey
from remote import keys as object_keys
from remote.clock import Ids
from remote.keys import PartitionPath, parse_segment_name
from remote.manifest.segment_entry import IDENTITY, SegmentEntry, StoredObject
from remote.segment.upload import PART_BYTES, verify
from remote.segment_bytes import SegmentBytes, get_named
from remote.store.api import Body, ObjectStore
from remote.transforms.encoded_segment import ENCODINGS, source_chunk_bytes
from remote.transforms.encoder import Encryption, Transforms, encode


@dataclass(frozen=True, slots=True)
class SegmentCopies:
    """Copies segments from one partition to another; `decoded` and `encryption` are for those that are encrypted."""

    store: ObjectStore
    source: PartitionPath
    target: PartitionPath
    ids: Ids
    decoded: SegmentBytes
    encryption: Encryption | None = None

    def copy(self, entry: SegmentEntry) -> SegmentEntry:
        """The entry of the copy, whose objects are there and verified. Nothing names them yet.

        Raises Corrupt (the segment's objects are damaged), NoKey and WrongKey for what is encrypted, Unavailable, Unknown.
        """
        segment_id = self.ids.new_id()
        parsed = parse_segment_name(entry.log_name)
        epoch = parsed[1] if parsed else -1
        renamed = replace(
            entry,
            segment_id=segment_id,
            log_name=object_keys.segment_name(entry.base_offset, epoch, segment_id, object_keys.LOG),
            aux_name=object_keys.segment_name(entry.base_offset, epoch, segment_id, object_keys.AUX),
        )
        parts: tuple[Iterable[Body], Iterable[Body]] = self._stored(entry.stored_log), self._stored(entry.stored_aux)
        if entry.is_encrypted:
            renamed, parts = self._encoded(entry, renamed)
        for stored, body in zip((renamed.stored_log, renamed.stored_aux), parts, strict=True):
            key = self.target.segment(stored.name)
            self.store.upload(key, body, size=stored.size, crc32c=stored.crc32c)
            verify(self.store, key, stored.size, stored.crc32c)
        return renamed

    def _stored(self, stored: StoredObject) -> "_Parts":
        return _Parts(self.store, self.source.segment(stored.name), stored.size)

    def _encoded(self, entry: SegmentEntry, renamed: SegmentEntry) -> tuple[SegmentEntry, tuple[Iterable[Body], Iterable[Body]]]:
        if self.encryption is None:
            key_id = entry.encoded.key_id if entry.encoded else ""
            reason = "it is encrypted for its topic id, and is to be kept under another"
            raise NoKey(key_id, reason, self.source.segment(entry.log_name))
        compress = ENCODINGS.get(entry.encoding, (False, True))[0]
        transforms = Transforms(compress, self.encryption, source_chunk_bytes(entry))
        aux = self.decoded.aux(self.source, entry, 0, entry.aux_size)
        encoded = encode(
            self.target,
            replace(renamed, encoding=IDENTITY, encoded=None),
            lambda start, end: self.decoded.log(self.source, entry, start, end),
            aux,
            transforms,
        )
        return encoded.entry, (encoded.log.in_parts(PART_BYTES), encoded.aux.in_parts(PART_BYTES))


@dataclass(frozen=True, slots=True)
class _Parts:
    """An object's bytes, as often as the upload is made."""

    store: ObjectStore
    key: str
    size: int

    def __iter__(self) -> Iterator[Body]:
        for start in range(0, self.size, PART_BYTES):
            yield get_named(self.store, self.key, start, min(self.size, start + PART_BYTES))
