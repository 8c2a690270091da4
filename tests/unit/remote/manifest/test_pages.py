"""Pages as bytes."""

import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_manifests import PATH, entry
from manifest_values import entries, refs

from local_log.errors import Corrupt, Newer
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.checksum import crc32c
from remote.manifest.model import Item, PageBounds, PageRef
from remote.manifest.pages import ENTRY_SCHEMA, REF_SCHEMA, decode, encode, ref_of, table
from remote.manifest.segment_entry import SegmentEntry

KEY = "topic/id/0/manifest/pages/1.parquet"
SAMPLE = [entry(10 * n, 10 * n + 10, leader_epochs=(EpochEntry(0, 0), EpochEntry(n, 10 * n))) for n in range(20)]


def described(level: int, body: bytes) -> PageRef:
    """A ref that says of a page no more than what keeps it from being refused."""
    try:
        found = pq.read_table(io.BytesIO(body))
        count = sum(found["count"].to_pylist()) if "count" in found.column_names else found.num_rows
    except (pa.ArrowException, OSError):
        count = 1
    return PageRef(level, "", 0, 0, 0, 0, 0, count, 0, 0, len(body), crc32c(body))


@settings(deadline=None)
@given(st.lists(entries, min_size=1, max_size=5))
@pytest.mark.slow
def test_entries_come_back_as_they_were(some: list[SegmentEntry]) -> None:
    body = encode(0, some)
    assert decode(body, described(0, body), KEY) == tuple(some)


@settings(deadline=None)
@given(st.lists(refs, min_size=1, max_size=5))
def test_refs_come_back_as_they_were(some: list[PageRef]) -> None:
    body = encode(3, some)
    assert decode(body, described(3, body), KEY) == tuple(some)


def test_refs_from_before_there_were_bounds_are_read() -> None:
    inner = ref_of(0, SAMPLE, encode(0, SAMPLE), "a" * 32)
    old = table(REF_SCHEMA, [inner]).replace_schema_metadata(pq.read_schema(io.BytesIO(encode(1, [inner]))).metadata)
    sink = io.BytesIO()
    pq.write_table(old.drop_columns(["bounds"]), sink)
    assert decode(sink.getvalue(), described(1, sink.getvalue()), KEY) == (replace(inner, bounds=None),)


def test_a_ref_says_what_a_search_has_to_know() -> None:
    some = [
        entry(0, 10, max_timestamp_ms=70, log_size=5, aux_size=1),
        entry(4, 30, max_timestamp_ms=90, log_size=6, aux_size=2),
        entry(9, 20, max_timestamp_ms=80, log_size=7, aux_size=3),
    ]
    body = encode(0, some)
    ref = ref_of(0, some, body, "a" * 32)
    name, bounds = f"{0:020d}-{9:020d}-{'a' * 32}.parquet", PageBounds(True, 0, 70, 90, 5)
    assert ref == PageRef(0, name, 0, 9, 10, 30, 90, 3, 18, 6, len(body), crc32c(body), bounds)
    later = [entry(30, 31, max_timestamp_ms=1)]
    above = [ref, ref_of(0, later, encode(0, later), "b" * 32)]
    top = ref_of(1, above, encode(1, above), "c" * 32)
    assert (top.level, top.base_offset, top.last_base_offset, top.min_end_offset, top.end_offset) == (1, 0, 30, 10, 31)
    assert (top.max_timestamp_ms, top.count, top.log_bytes, top.aux_bytes) == (90, 4, 118, 16)
    assert PATH.page(top.name).startswith(PATH.pages)


def test_any_parquet_reader_finds_the_fields_by_their_names() -> None:
    found = pq.read_table(io.BytesIO(encode(0, SAMPLE))).to_pylist()
    assert [row["base_offset"] for row in found] == [e.base_offset for e in SAMPLE]
    assert [row["log_name"] for row in found] == [e.log_name for e in SAMPLE]
    assert found[3]["leader_epochs"] == [{"epoch": 0, "start_offset": 0}, {"epoch": 3, "start_offset": 30}]
    assert found[3]["aux_ranges"] == [{"part": "offset_index", "start": 0, "end": 10, "crc32c": 0}]
    assert found[3]["other_fields"] is None


def test_fields_of_a_newer_writer_are_kept_also_where_they_have_columns_of_their_own() -> None:
    newer = table(ENTRY_SCHEMA, [entry(0, 10, unknown={"key": "k1"}), entry(10, 20)]).append_column("codec", [["zstd", None]])
    newer = newer.replace_schema_metadata(pq.read_schema(io.BytesIO(encode(0, SAMPLE))).metadata)
    sink = io.BytesIO()
    pq.write_table(newer, sink)
    items = decode(sink.getvalue(), described(0, sink.getvalue()), KEY)
    assert [i.unknown for i in items] == [{"codec": "zstd", "key": "k1"}, {}]
    again = encode(0, items)
    assert decode(again, described(0, again), KEY) == items


def assert_corrupt(body: bytes, ref: PageRef) -> None:
    with pytest.raises(Corrupt) as raised:
        decode(body, ref, KEY)
    assert raised.value.file == KEY


def test_a_page_cut_or_changed_anywhere_is_corrupt() -> None:
    body = encode(0, SAMPLE[:3])
    ref = described(0, body)
    for at in range(len(body)):
        assert_corrupt(body[:at], ref)
        assert_corrupt(body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :], ref)
    assert_corrupt(body + b"\0", ref)


def test_what_is_no_page_is_corrupt_though_its_checksum_is_right() -> None:
    sound = encode(0, SAMPLE)
    for body in (b"", b"PAR1", b"PAR1" * 20, sound[:-8] + b"\0" * 4 + b"PAR1", sound[: len(sound) // 2]):
        assert_corrupt(body, described(0, body))
    for level, body in ((1, sound), (0, encode(1, [described(0, sound)])), (2, encode(1, [described(0, sound)]))):
        assert_corrupt(body, described(level, body))


@pytest.mark.parametrize("name", [f.name for f in ENTRY_SCHEMA])
def test_a_page_that_lacks_a_column_or_has_one_of_another_type_is_corrupt(name: str) -> None:
    whole = table(ENTRY_SCHEMA, SAMPLE).replace_schema_metadata(pq.read_schema(io.BytesIO(encode(0, SAMPLE))).metadata)
    at = whole.column_names.index(name)
    lacking = [] if name == "min_timestamp_ms" else [whole.drop_columns([name])]
    for wrong in (*lacking, whole.set_column(at, name, [[{"a": 1}] * len(SAMPLE)])):
        sink = io.BytesIO()
        pq.write_table(wrong, sink)
        assert_corrupt(sink.getvalue(), described(0, sink.getvalue()))


def test_a_page_from_before_there_were_least_timestamps_knows_none() -> None:
    known = [replace(e, min_timestamp_ms=5) for e in SAMPLE]
    whole = table(ENTRY_SCHEMA, known).replace_schema_metadata(pq.read_schema(io.BytesIO(encode(0, known))).metadata)
    sink = io.BytesIO()
    pq.write_table(whole.drop_columns(["min_timestamp_ms"]), sink)
    found = decode(sink.getvalue(), described(0, sink.getvalue()), "a page")
    assert found == tuple(SAMPLE)


def test_a_page_of_a_newer_major_version_is_refused_by_name() -> None:
    metadata = dict(pq.read_schema(io.BytesIO(encode(0, SAMPLE))).metadata)
    metadata[b"kafka-tiering.format"] = json.dumps({"major": 2, "minor": 0}).encode()
    sink = io.BytesIO()
    pq.write_table(table(ENTRY_SCHEMA, SAMPLE).replace_schema_metadata(metadata), sink)
    with pytest.raises(Newer, match=KEY):
        decode(sink.getvalue(), described(0, sink.getvalue()), KEY)


def test_a_field_that_a_page_lacks_a_value_of_is_corrupt() -> None:
    items: list[Item] = [described(0, b""), described(0, b"")]
    rows = table(REF_SCHEMA, items).to_pylist()
    rows[1]["end_offset"] = None
    loose = pa.Table.from_pylist(rows).replace_schema_metadata(pq.read_schema(io.BytesIO(encode(1, items))).metadata)
    sink = io.BytesIO()
    pq.write_table(loose, sink)
    assert_corrupt(sink.getvalue(), described(1, sink.getvalue()))


def test_a_page_that_names_something_elsewhere_is_corrupt_though_its_checksum_is_right() -> None:
    entries = encode(0, [replace(SAMPLE[0], log_name="../../../../etc/passwd")])
    assert_corrupt(entries, described(0, entries))
    refs = encode(1, [replace(described(0, b""), name="../../../../etc/passwd")])
    assert_corrupt(refs, described(1, refs))
