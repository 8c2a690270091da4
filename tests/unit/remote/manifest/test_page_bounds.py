"""What a page would become in memory, before it is inflated."""

import io
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_manifests import PATH, entry, paged

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32c
from remote.manifest import pages
from remote.manifest.model import Item, PageRef

KEY = PATH.page(paged(entry(0, 10)).name)
ENTRY_COLUMNS = [  # with the leaves of lists
    c for c in pages.ENTRY_SCHEMA.names for _ in range({"leader_epochs": 2, "aux_ranges": 4}.get(c, 1))
]
SOME = [entry(10 * n, 10 * n + 10) for n in range(100)]


def stored(table: Any, **options: Any) -> tuple[bytes, PageRef]:
    """A table as a page, with a ref that has its size and checksum, and states the 100 entries."""
    sink = io.BytesIO()
    metadata = pq.read_schema(io.BytesIO(pages.encode(0, SOME))).metadata
    pq.write_table(table.replace_schema_metadata(metadata), sink, **{"compression": "zstd", **options})
    body = sink.getvalue()
    return body, replace(paged(*SOME), size=len(body), crc32c=crc32c(body))


def refused(body: bytes, ref: PageRef) -> str:
    """Why a page is refused, as Corrupt that names its key; nothing of it was inflated."""
    before = pa.total_allocated_bytes()
    with pytest.raises(Corrupt) as raised:
        pages.decode(body, ref, KEY)
    assert raised.value.file == KEY
    assert pa.total_allocated_bytes() - before < 1 << 20
    return raised.value.problem


def test_a_page_with_more_rows_than_its_ref_states_is_refused_before_it_is_read() -> None:
    table = pages.table(pages.ENTRY_SCHEMA, SOME)
    assert "101 rows where its ref states 100" in refused(*stored(pa.concat_tables([table, table.slice(0, 1)])))
    assert "99 rows" in refused(*stored(table.slice(1)))
    assert "10000 rows" in refused(*stored(pa.concat_tables([table] * 100)))


def test_a_page_of_refs_of_other_entries_than_its_ref_states_is_corrupt() -> None:
    below: list[Item] = [paged(entry(0, 10)), paged(entry(10, 20))]
    body = pages.encode(1, below)
    ref = pages.ref_of(1, below, body, "a" * 32)
    assert pages.decode(body, ref, KEY) == tuple(below)
    for count in (1, 3, 2**62):
        assert refused(body, replace(ref, count=count))


def grown(name: str, values: list[Any]) -> Any:
    """The 100 entries with other values in a column."""
    table = pages.table(pages.ENTRY_SCHEMA, SOME)
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))


@pytest.mark.parametrize(
    ("name", "values", "options"),
    [
        ("other_fields", ["x" * 1_000_000] * 100, {"use_dictionary": False}),
        ("other_fields", ["x" * 1_000_000] * 100, {"use_dictionary": ["other_fields"]}),
        ("leader_epochs", [[{"epoch": 0, "start_offset": 0}] * 10_000] * 100, {"use_dictionary": False}),
    ],
    ids=["bytes that are all alike", "one text of a dictionary a hundred times", "a million leader epochs"],
)
def test_a_page_of_few_bytes_that_would_become_many_is_refused(name: str, values: list[Any], options: dict[str, Any]) -> None:
    body, ref = stored(grown(name, values), **options)
    assert len(body) < 1 << 16
    assert "more than" in refused(body, ref)


def test_texts_that_share_their_beginnings_are_refused() -> None:
    body, ref = stored(
        grown("other_fields", ["x" * 1_000 + str(n) for n in range(100)]),
        use_dictionary=False,
        column_encoding={"other_fields": "DELTA_BYTE_ARRAY"},
    )
    assert "encoding 7" in refused(body, ref)


def test_a_footer_that_says_less_than_the_pages_of_values_hold_is_not_believed() -> None:
    body, ref = stored(grown("other_fields", ["x" * 1_000_000] * 100), use_dictionary=False)
    size = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    column = pq.read_metadata(io.BytesIO(body)).row_group(0).column(ENTRY_COLUMNS.index("other_fields"))
    lied = body[:size] + body[size:].replace(varint(column.total_uncompressed_size), varint(1 << 20))
    assert lied != body
    assert "more than" in refused(lied, replace(ref, size=len(lied), crc32c=crc32c(lied)))


def varint(number: int) -> bytes:
    """A number as the compact protocol has it, in four bytes."""
    zigzag = number << 1
    assert 1 << 21 <= zigzag < 1 << 28
    return bytes([zigzag & 127 | 128, zigzag >> 7 & 127 | 128, zigzag >> 14 & 127 | 128, zigzag >> 21])


def test_a_page_with_a_changed_byte_is_read_or_corrupt_and_never_anything_else() -> None:
    body = pages.encode(0, SOME[:3])
    ref = pages.ref_of(0, SOME[:3], body, "a" * 32)
    for at in range(4, len(body), 7):
        changed = body[:at] + bytes([body[at] ^ 0x55]) + body[at + 1 :]
        try:
            pages.decode(changed, replace(ref, crc32c=crc32c(changed)), KEY)
        except Corrupt as e:
            assert e.file == KEY  # noqa: PT017  # it may also be read, where the byte says little


def test_what_the_writer_makes_is_within_the_bounds() -> None:
    many = [entry(n, n + 1) for n in range(2_048)]
    body = pages.encode(0, many)
    assert pages.decode(body, pages.ref_of(0, many, body, "a" * 32), KEY) == tuple(many)


def test_a_number_in_a_footer_that_never_ends_is_corrupt() -> None:
    footer = b"\x15" + b"\x80" * 30  # an integer, of bytes that each say that another one follows
    body = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert "cut off" in refused(body, replace(paged(*SOME), size=len(body), crc32c=crc32c(body)))
