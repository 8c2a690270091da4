"""Manifests as bytes: JSON with sorted keys, so that one manifest has one form and one hash.

Its last field, `~crc32c`, is the CRC-32C of all bytes before that field, in hexadecimal digits: the newest manifest has no child
yet that would know its hash. What is signed has one field more after it (see `signatures`), and format 2: versions from before
there were signatures refuse that, since they would commit without one. A major version above ours is refused; fields that we do
not know, of a newer minor version, are kept as they are.
"""

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from local_log.errors import Corrupt, Invalid
from local_log.formats.checkpoints import EpochEntry
from remote.keys import WritePath, check_page_names, check_segment_names
from remote.manifest.gaps import Divergence, Gap
from remote.manifest.model import Deleting, Loss, Manifest, PageBounds, PageRef, PendingWrite, WriteMark
from remote.manifest.numbers import bounds_of, whole
from remote.manifest.segment_entry import AuxRange, EncodingInfo, SegmentEntry
from remote.manifest.stamped_json import (
    MAJOR,
    MANIFEST_BYTES_MAX,
    MINOR,
    REMEDY,
    SIGNED_MAJOR,
    _is_unstamped,
    _read_stamped,
    read_signed,
    stamped,
)

_LEFT_OUT = (
    "deleted_at_ms", "written", "pending", "local_log_end_offsets", "gone", "losses", "only_seen", "data_committed_at_ms",
    "diverged", "kept_from",
)  # fmt: skip
"""The fields of a manifest that are not stored where they say nothing."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
NOT_STORED = {"unknown", "signed_by"}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name not in NOT_STORED)


@cache
def _known(kind: type) -> frozenset[str]:
    return frozenset(_names(kind))


@cache
def _plain_types(kind: type) -> tuple[tuple[str, Any, int, int], ...]:
    """Of each field that JSON has as it is: name, type, and for a number the least and the greatest that it may be."""
    plain = (f for f in fields(kind) if f.type in (int, str, bool) and f.name not in NOT_STORED)
    return tuple((f.name, f.type, *bounds_of(f.name)) for f in plain)


def encode(manifest: Manifest) -> bytes:
    """The manifest's stored form, which the store signs that signs."""
    value = {name: getattr(manifest, name) for name in _names(Manifest)} | {
        "format": {"major": SIGNED_MAJOR if manifest.signed_by else MAJOR, "minor": MINOR},
        "local_log_start_offsets": dict(manifest.local_log_start_offsets),
        "leader_epochs": _epochs(manifest.leader_epochs),
        "entries": [_entry(e) for e in manifest.entries],
        "gaps": [_gap(g) for g in manifest.gaps],
        "pages": [_page(ref) for ref in manifest.pages],
        "deleting": [_deleting(d) for d in manifest.deleting],
        "written": _mark(manifest.written),
        "pending": _pending(manifest.pending),
        "local_log_end_offsets": dict(manifest.local_log_end_offsets),
        "gone": dict(manifest.gone),
        "losses": [_loss(loss) for loss in manifest.losses],
        "diverged": [_divergence(d) for d in manifest.diverged],
    }
    for name in _LEFT_OUT:
        if not value[name]:
            del value[name]  # what does not have it keeps the form from before there was any
    body = stamped({**manifest.unknown, **value})
    if len(body) > MANIFEST_BYTES_MAX:
        raise Invalid(f"{manifest.path}: a manifest of {len(body)} bytes, but the maximum is {MANIFEST_BYTES_MAX}")
    return body


def as_stored(manifest: Manifest) -> dict[str, Any]:
    """The JSON object that `encode` stores, without its checksum."""
    return _read_stamped(encode(manifest), "", SIGNED_MAJOR)


def decode(body: bytes, key: str) -> Manifest:
    """The manifest stored under `key`. Raises Corrupt for what is no manifest, Newer."""
    value, signature = read_signed(body, key)
    try:
        if _is_unstamped(value):
            value = {"pages": [], "deleting": [], **value}  # from before there were any
        value = {"deleted_at_ms": 0, "only_seen": False, "data_committed_at_ms": 0, "kept_from": "", **value}
        manifest = Manifest(
            **read_plain(Manifest, value),
            local_log_start_offsets=_by_source(value["local_log_start_offsets"]),
            leader_epochs=_read_epochs(value["leader_epochs"]),
            entries=tuple(_read_entry(e) for e in _list(value["entries"])),
            gaps=tuple(_read_gap(g) for g in _list(value["gaps"])),
            pages=tuple(_read_page(ref) for ref in _list(value["pages"])),
            deleting=tuple(_read_deleting(d) for d in _list(value["deleting"])),
            written=_read_mark(value.get("written")),
            pending=_read_pending(value.get("pending")),
            local_log_end_offsets=_by_source(value.get("local_log_end_offsets", {})),
            gone=_by_source(value.get("gone", {}), "since_ms"),
            losses=tuple(_read_loss(loss) for loss in _list(value.get("losses", []))),
            diverged=tuple(_read_divergence(d) for d in _list(value.get("diverged", []))),
            unknown=_unknown(Manifest, value, "format"),
            signed_by=signature.key_id if signature else "",
        )
        _ = manifest.path
    except (KeyError, TypeError, ValueError, AttributeError, Invalid) as e:
        raise Corrupt(f"not a manifest: {e!r}; {REMEDY}", file=key) from e
    return manifest


def _by_source(value: Any, name: str = "offset") -> dict[str, int]:
    return {str(source): whole(number, name) for source, number in value.items()}


def _epochs(entries: tuple[EpochEntry, ...]) -> list[list[int]]:
    return [[e.epoch, e.start_offset] for e in entries]


def _read_epochs(value: Any) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(whole(epoch, "epoch"), whole(start)) for epoch, start in _list(value))


def _gap(gap: Gap) -> dict[str, Any]:
    value = _fields(gap)
    if not gap.kind:
        del value["kind"]  # gaps from before there were kinds keep their form
    return value


def _fields(value: Gap | PageRef) -> dict[str, Any]:
    kind: type = type(value)
    return {**value.unknown, **{name: getattr(value, name) for name in _names(kind)}}


def _page(ref: PageRef) -> dict[str, Any]:
    value = _fields(ref) | {"bounds": bounds(ref.bounds)}
    for name in ("bounds", "sha256"):
        if value[name] is None:
            del value[name]  # refs from before there were any, and those of what is not signed, keep their form
    return value


def bounds(of: PageBounds | None) -> list[Any] | None:
    """The stored form of what a ref says of all entries below it: values alone, since a manifest may have a thousand refs."""
    return None if of is None else [getattr(of, name) for name in _names(PageBounds)]


def read_bounds(value: list[Any] | None) -> PageBounds | None:
    """What `bounds` gave. Raises TypeError, ValueError for anything else."""
    if value is None:
        return None
    return PageBounds(**read_plain(PageBounds, dict(zip(_names(PageBounds), _list(value), strict=True))))


def read_hash(value: Any) -> str | None:
    """The hash that a ref has of its page, None where it has none. Raises ValueError for what is no hash."""
    if value is not None and (type(value) is not str or not _SHA256.fullmatch(value)):
        raise ValueError(f"sha256 is {value!r}")
    return value


def _entry(entry: SegmentEntry) -> dict[str, Any]:
    value = {name: getattr(entry, name) for name in _names(SegmentEntry)} | {
        "leader_epochs": _epochs(entry.leader_epochs),
        "aux_ranges": {name: [r.start, r.end, r.crc32c] for name, r in entry.aux_ranges.items()},
        "encoded": encoded(entry.encoded),
    }
    if entry.encoded is None:
        del value["encoded"]  # entries from before there was one keep their form
    if entry.min_timestamp_ms is None:
        del value["min_timestamp_ms"]
    return {**entry.unknown, **value}


def encoded(info: EncodingInfo | None) -> dict[str, Any] | None:
    """The stored form of how an entry's objects are encoded."""
    return None if info is None else {**info.unknown, **{name: getattr(info, name) for name in _names(EncodingInfo)}}


def read_encoded(value: dict[str, Any] | None) -> EncodingInfo | None:
    """What `encoded` gave. Raises KeyError, TypeError for anything else."""
    if value is None:
        return None
    return EncodingInfo(
        **read_plain(EncodingInfo, value),
        aux_lengths=tuple(whole(length) for length in _list(value["aux_lengths"])),
        unknown=_unknown(EncodingInfo, value),
    )


def _read_entry(value: dict[str, Any]) -> SegmentEntry:
    plain = read_plain(SegmentEntry, value)
    check_segment_names((plain["log_name"], plain["aux_name"]))
    return SegmentEntry(
        **plain,
        leader_epochs=_read_epochs(value["leader_epochs"]),
        aux_ranges={
            name: AuxRange(whole(start), whole(end), whole(crc32c, "crc32c"))
            for name, (start, end, crc32c) in value["aux_ranges"].items()
        },
        encoded=read_encoded(value.get("encoded")),
        min_timestamp_ms=whole(value["min_timestamp_ms"], "min_timestamp_ms") if "min_timestamp_ms" in value else None,
        unknown=_unknown(SegmentEntry, value),
    )


def _read_gap(value: dict[str, Any]) -> Gap:
    return Gap(**read_plain(Gap, {"kind": "", **value}), unknown=_unknown(Gap, value))


def _loss(loss: Loss) -> dict[str, Any]:
    value = {name: getattr(loss, name) for name in _names(Loss)}
    if not loss.acknowledged_at_ms:
        del value["acknowledged_at_ms"], value["acknowledged_by"]
    return {**loss.unknown, **value}


def _read_loss(value: dict[str, Any]) -> Loss:
    return Loss(**read_plain(Loss, {"acknowledged_at_ms": 0, "acknowledged_by": "", **value}), unknown=_unknown(Loss, value))


def _divergence(divergence: Divergence) -> dict[str, Any]:
    return {**divergence.unknown, **{name: getattr(divergence, name) for name in _names(Divergence)}}


def _read_divergence(value: dict[str, Any]) -> Divergence:
    return Divergence(**read_plain(Divergence, value), unknown=_unknown(Divergence, value))


def _read_page(value: dict[str, Any]) -> PageRef:
    plain = read_plain(PageRef, value)
    check_page_names((plain["name"],))
    return PageRef(
        **plain, bounds=read_bounds(value.get("bounds")), sha256=read_hash(value.get("sha256")), unknown=_unknown(PageRef, value)
    )


def _deleting(item: Deleting) -> dict[str, Any]:
    what = {"segment": _entry(item.item)} if isinstance(item.item, SegmentEntry) else {"page": _page(item.item)}
    return {**item.unknown, "since_ms": item.since_ms, **what}


def _read_deleting(value: dict[str, Any]) -> Deleting:
    item = _read_page(value["page"]) if "page" in value else _read_entry(value["segment"])
    unknown = _unknown(Deleting, value, "page" if "page" in value else "segment")
    return Deleting(item, whole(value["since_ms"], "since_ms"), unknown)


def _mark(mark: WriteMark | None) -> dict[str, Any] | None:
    return None if mark is None else {**mark.unknown, **{name: getattr(mark, name) for name in _names(WriteMark)}}


def _read_mark(value: dict[str, Any] | None) -> WriteMark | None:
    return None if value is None else WriteMark(**read_plain(WriteMark, value), unknown=_unknown(WriteMark, value))


def _pending(write: PendingWrite | None) -> dict[str, Any] | None:
    if write is None:
        return None
    value = {name: getattr(write, name) for name in ("topic", "topic_id")} | {
        "mark": _mark(write.mark),
        "entries": [_entry(e) for e in write.entries],
        "lineage": _epochs(write.lineage),
    }
    return {**write.unknown, **value}


def _read_pending(value: dict[str, Any] | None) -> PendingWrite | None:
    if value is None:
        return None
    mark = _read_mark(value["mark"])
    if mark is None:
        raise TypeError("a pending write without a mark")
    pending = PendingWrite(
        **read_plain(PendingWrite, value),
        mark=mark,
        entries=tuple(_read_entry(e) for e in _list(value["entries"])),
        lineage=_read_epochs(value["lineage"]),
        unknown=_unknown(PendingWrite, value),
    )
    WritePath(pending.topic, pending.topic_id, mark.write_id).attempt(mark.attempt_id)  # with another name it could lead anywhere
    return pending


def read_plain(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that JSON has as they are, each of its type (True is no int, and 5 no text), and no number out of its bounds.

    Raises KeyError, TypeError, ValueError.
    """
    plain = _plain_types(kind)
    for name, wanted, least, most in plain:
        found = value[name]
        if type(found) is not wanted:
            raise TypeError(f"{name} is {found!r}")
        if wanted is int and not least <= found <= most:
            whole(found, name)
    return {name: value[name] for name, *_ in plain}


def _unknown(kind: type, value: dict[str, Any], *besides: str) -> dict[str, Any]:
    others = value.keys() - _known(kind)
    return {k: v for k, v in value.items() if k in others and k not in besides} if others else {}


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError(f"{value!r} is no list")
    return value
