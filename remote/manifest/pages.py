"""Pages as bytes: Parquet, a row an item, columns named as the fields, so that any SQL engine reads them.

A page of level 0 has a row for each entry, with `leader_epochs` and `aux_ranges` as lists of structs and `encoded` as JSON (null
where nothing is encoded); one of level n has a row for each ref of level n - 1, with `bounds` as JSON. Fields that we do not
know, of a newer minor version, stand as JSON in `other_fields`; a newer version may also give them columns of their own. The
file's metadata says format and level.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import accumulate
from typing import Any

import pyarrow as pa

from local_log.errors import Corrupt, Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.checksum import crc32c
from remote.keys import check_page_names, check_segment_names, page_name
from remote.manifest import codec, page_bounds, stamped_json
from remote.manifest.model import Item, PageBounds, PageRef, count_of
from remote.manifest.numbers import whole
from remote.manifest.segment_entry import AuxRange, SegmentEntry

PAGE_BYTES_MAX = 64 << 20
_OTHER = "other_fields"
_JSON = ("encoded", "bounds")
_LATER = {"min_timestamp_ms": pa.int64(), "bounds": pa.string(), "sha256": pa.string()}
"""Columns that pages from before do not have; they are null where nothing is known."""
_FORMAT, _LEVEL = b"kafka-tiering.format", b"kafka-tiering.level"
_TYPES: dict[Any, Any] = {int: pa.int64(), str: pa.string(), bool: pa.bool_()}
_NESTED = {
    "leader_epochs": pa.list_(pa.struct([("epoch", pa.int64()), ("start_offset", pa.int64())])),
    "aux_ranges": pa.list_(
        pa.struct([("part", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("crc32c", pa.int64())])
    ),
}


def _schema(kind: type) -> Any:
    return pa.schema([*(_field(f.name, f.type) for f in fields(kind) if f.name != "unknown"), pa.field(_OTHER, pa.string())])


def _field(name: str, kind: Any) -> Any:
    if name in _JSON:
        return pa.field(name, pa.string())
    if name in _LATER:
        return pa.field(name, _LATER[name])
    return pa.field(name, _NESTED.get(name) or _TYPES[kind], nullable=False)


ENTRY_SCHEMA = _schema(SegmentEntry)
REF_SCHEMA = _schema(PageRef)


def encode(level: int, items: Sequence[Item]) -> bytes:
    """The page's stored form. Raises Invalid for one that is too large to be read again."""
    import pyarrow.parquet as pq  # most manifests have no page

    form = json.dumps({"major": stamped_json.MAJOR, "minor": stamped_json.MINOR}).encode()
    kept = table(REF_SCHEMA if level else ENTRY_SCHEMA, items).replace_schema_metadata(
        {_FORMAT: form, _LEVEL: str(level).encode()}
    )
    if level and not any(i.sha256 for i in items if isinstance(i, PageRef)):
        kept = kept.drop_columns(["sha256"])  # pages of what is not signed keep their form
    sink = pa.BufferOutputStream()
    pq.write_table(kept, sink, compression="zstd", use_dictionary=["encoding"] if level == 0 else False)
    body = bytes(sink.getvalue())
    if len(body) > PAGE_BYTES_MAX:
        raise Invalid(f"a page of {len(body)} bytes, but the maximum is {PAGE_BYTES_MAX}")
    try:
        page_bounds.rows_of(body)
    except ValueError as e:
        raise Invalid(f"a page that nobody reads: {e}") from e
    return body


def table(schema: Any, items: Iterable[Item]) -> Any:
    """Items as an Arrow table."""
    rows = [*items]
    columns: dict[str, list[Any]] = {
        n: [getattr(i, n) for i in rows] for n in schema.names if n not in (*_NESTED, *_JSON, _OTHER)
    }
    if schema is ENTRY_SCHEMA:
        entries = [e for e in rows if isinstance(e, SegmentEntry)]
        columns["leader_epochs"] = [
            [{"epoch": p.epoch, "start_offset": p.start_offset} for p in e.leader_epochs] for e in entries
        ]
        columns["aux_ranges"] = [
            [{"part": part, "start": r.start, "end": r.end, "crc32c": r.crc32c} for part, r in e.aux_ranges.items()]
            for e in entries
        ]
        columns["encoded"] = [json.dumps(codec.encoded(e.encoded), sort_keys=True) if e.encoded else None for e in entries]
    else:
        columns["bounds"] = [json.dumps(codec.bounds(r.bounds)) if r.bounds else None for r in rows if isinstance(r, PageRef)]
    columns[_OTHER] = [json.dumps(dict(i.unknown), sort_keys=True) if i.unknown else None for i in rows]
    return pa.table(columns, schema=schema)


def ref_of(level: int, items: Sequence[Item], body: bytes, page_id: str, *, hashed: bool = False) -> PageRef:
    """What a manifest or a page above says of the page that `items` have become; its SHA-256, too, where it is `hashed`."""
    entries = [i for i in items if isinstance(i, SegmentEntry)]
    refs = [i for i in items if isinstance(i, PageRef)]
    base, last = items[0].base_offset, max([*(e.base_offset for e in entries), *(r.last_base_offset for r in refs)])
    return PageRef(
        level=level,
        name=page_name(base, last, page_id),
        base_offset=base,
        last_base_offset=last,
        min_end_offset=min([*(e.end_offset for e in entries), *(r.min_end_offset for r in refs)]),
        end_offset=max(i.end_offset for i in items),
        max_timestamp_ms=max(i.max_timestamp_ms for i in items),
        count=sum(count_of(i) for i in items),
        log_bytes=sum(e.log_size for e in entries) + sum(r.log_bytes for r in refs),
        aux_bytes=sum(e.aux_size for e in entries) + sum(r.aux_bytes for r in refs),
        size=len(body),
        crc32c=crc32c(body),
        bounds=bounds_of(items),
        sha256=hashlib.sha256(body).hexdigest() if hashed else None,
    )


def bounds_of(items: Sequence[Item]) -> PageBounds | None:
    """What holds of all entries below these items, all entries or all refs; None where a ref does not say."""
    known = [_own_bounds(i) if isinstance(i, SegmentEntry) else i.bounds for i in items]
    of = [b for b in known if b is not None]
    if len(of) < len(known):
        return None
    ends = accumulate((i.end_offset for i in items), max)
    return PageBounds(
        overlaps=any(b.overlaps for b in of) or any(after.base_offset < end for after, end in zip(items[1:], ends, strict=False)),
        least_epoch=min((b.least_epoch for b in of if b.least_epoch >= 0), default=-1),
        oldest_ms=min(b.oldest_ms for b in of),
        youngest_ms=max(b.youngest_ms for b in of),
        first_log_size=of[0].first_log_size,
    )


def _own_bounds(entry: SegmentEntry) -> PageBounds:
    epoch = entry.leader_epochs[-1].epoch if entry.leader_epochs else -1
    return PageBounds(False, epoch, entry.written_ms, entry.written_ms, entry.log_size)


def decode(body: bytes, ref: PageRef, key: str) -> tuple[Item, ...]:
    """The items of the page that is stored under `key`.

    Raises Corrupt where it is not what `ref` says, Newer.
    """
    import pyarrow.parquet as pq

    if len(body) != ref.size or crc32c(body) != ref.crc32c or len(body) > PAGE_BYTES_MAX:
        problem = f"{len(body)} bytes with CRC-32C {crc32c(body):08x} where the manifest states {ref.size} and {ref.crc32c:08x}"
        raise Corrupt(f"{problem}; {stamped_json.REMEDY}", file=key)
    if ref.sha256 is not None and hashlib.sha256(body).hexdigest() != ref.sha256:
        raise Corrupt(f"its SHA-256 is not the one that the manifest states; {stamped_json.REMEDY}", file=key)
    try:
        _check_rows(page_bounds.rows_of(body), ref)
        file = pq.ParquetFile(pa.BufferReader(body))
        metadata = file.schema_arrow.metadata or {}
        stamped_json.check_format({"format": json.loads(metadata.get(_FORMAT, b"null"))}, key)
        if metadata.get(_LEVEL) != str(ref.level).encode():
            raise Corrupt(f"a page of level {metadata.get(_LEVEL)!r} where one of {ref.level} should be", file=key)
        items = _items(file.read(use_threads=False), REF_SCHEMA if ref.level else ENTRY_SCHEMA)
        _check_count(items, ref)
    except (pa.ArrowException, KeyError, TypeError, ValueError, OSError) as e:
        raise Corrupt(f"not a page: {e!r}; {stamped_json.REMEDY}", file=key) from e
    return items


def _check_count(items: Sequence[Item], ref: PageRef) -> None:
    """Raises ValueError where there are other entries below these items than the ref speaks of."""
    count = sum(count_of(i) for i in items)
    if count != ref.count:
        raise ValueError(f"{count} entries below it where its ref states {ref.count}")


def _check_rows(rows: int, ref: PageRef) -> None:
    """Raises ValueError for rows that the ref does not speak of; one of refs has fewer than there are entries below it."""
    if rows > ref.count or (ref.level == 0 and rows != ref.count):
        raise ValueError(f"{rows} rows where its ref states {ref.count} entries")


def _items(found: Any, schema: Any) -> tuple[Item, ...]:
    for name in schema.names:
        if name in _LATER and name not in found.column_names:
            found = found.append_column(name, pa.nulls(found.num_rows, _LATER[name]))
    known = found.select(schema.names)
    known = known if known.schema == schema else known.cast(schema)
    columns = {name: known.column(name).to_pylist() for name in schema.names}
    others = columns.pop(_OTHER)
    newer = {name: found.column(name).to_pylist() for name in found.column_names if name not in schema.names}
    unknown = [
        {**{name: values[n] for name, values in newer.items() if values[n] is not None}, **(json.loads(text) if text else {})}
        for n, text in enumerate(others)
    ]
    for name, field in zip(schema.names, schema.types, strict=True):
        if field == pa.int64():
            given = [n for n in columns[name] if n is not None]
            _ = whole(min(given, default=0), name), whole(max(given, default=0), name)
    if schema is REF_SCHEMA:
        check_page_names(columns["name"])
        columns["sha256"] = [codec.read_hash(value) for value in columns["sha256"]]
        columns["bounds"] = [codec.read_bounds(json.loads(text) if text else None) for text in columns["bounds"]]
        return tuple(PageRef(*row) for row in zip(*columns.values(), unknown, strict=True))
    check_segment_names(columns["log_name"] + columns["aux_name"])
    columns["leader_epochs"] = [
        tuple(EpochEntry(whole(e["epoch"], "epoch"), whole(e["start_offset"])) for e in epochs)
        for epochs in columns["leader_epochs"]
    ]
    columns["aux_ranges"] = [
        {r["part"]: AuxRange(whole(r["start"]), whole(r["end"]), whole(r["crc32c"], "crc32c")) for r in ranges}
        for ranges in columns["aux_ranges"]
    ]
    columns["encoded"] = [codec.read_encoded(json.loads(text) if text else None) for text in columns["encoded"]]
    return tuple(SegmentEntry(*row) for row in zip(*columns.values(), unknown, strict=True))
