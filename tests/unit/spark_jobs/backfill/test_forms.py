"""Keys and values as text and JSON: what can be read is read, and the rest is kept as it was and counted."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.backfill.forms import As, Form

TYPE = pa.struct(
    [("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("tags", pa.list_(pa.string()))]
)
JSON = Form(As.json, TYPE, "struct<…>")
NOTHING = {"id": None, "name": None, "at": None, "tags": None}
GOOD = {
    b'{"id": 7, "name": "\xc3\xa9", "other": {"id": 1}}': {**NOTHING, "id": 7, "name": "é"},
    b'\n {\n "id": 8,\n "tags": ["a", null]}\r\n': {**NOTHING, "id": 8, "tags": ["a", None]},
    b'{"at": "2026-11-20T10:00:00Z", "name": null}': {**NOTHING, "at": datetime(2026, 11, 20, 10, tzinfo=UTC)},
    b"{}": NOTHING,
}
BAD = [
    b"", b" ", b"7", b"[]", b"null", b"{", b"}",
    b'{"id": "7"}', b'{"id": 7.5}', b'{"id": 7}}', b'{"id": 7}{"id": 8}', b'{"id": 7}\n{"id": 8}',
    b'{"id": 1, "name": "x}', b'{"name": {}', b', "id": 1}', b"\xff\xfe", b'{"name": "\xff"}', b'{"id": 99999999999999999999}',
]  # fmt: skip


def read(form: Form, values: list[bytes | None]) -> tuple[list[Any], list[bytes | None], int]:
    (found, raw), unparsed = form.read(pa.array(values, pa.binary()))
    return found.to_pylist(), raw.to_pylist(), unparsed


@pytest.mark.parametrize("value", BAD)
def test_a_value_that_is_no_such_document_stays_as_it_was(value: bytes) -> None:
    for around in ([], [*GOOD], [b"", None]):
        found, raw, unparsed = read(JSON, [*around, value, *around])
        good = [GOOD.get(v) if v else None for v in around]
        bad = [v if v not in GOOD else None for v in around]
        assert found == [*good, None, *good]
        assert raw == [*bad, value, *bad]
        assert unparsed == 1 + 2 * around.count(b"")


@given(st.lists(st.one_of(st.none(), st.sampled_from([*GOOD]), st.sampled_from(BAD)), max_size=30))
def test_each_value_is_read_or_kept_in_its_place(values: list[bytes | None]) -> None:
    found, raw, unparsed = read(JSON, values)
    assert found == [GOOD.get(v) if v is not None else None for v in values]
    assert raw == [v if v not in GOOD else None for v in values]
    assert unparsed == sum(v is not None and v not in GOOD for v in values)


@given(st.lists(st.one_of(st.none(), st.binary(max_size=4), st.text(max_size=4).map(str.encode)), max_size=20))
def test_text_is_what_is_utf_8(values: list[bytes | None]) -> None:
    found, raw, unparsed = read(Form(As.text), values)
    for value, text, kept in zip(values, found, raw, strict=True):
        assert value == (kept if text is None else text.encode())
        assert text is None or kept is None
    assert unparsed == len([kept for kept in raw if kept is not None])


@given(st.lists(st.fixed_dictionaries({"id": st.integers(-(2**63), 2**63 - 1), "name": st.text()}), min_size=1, max_size=20))
def test_what_json_writes_is_read_back(documents: list[dict[str, Any]]) -> None:
    found, _, unparsed = read(JSON, [json.dumps(d, ensure_ascii=number % 2 == 0).encode() for number, d in enumerate(documents)])
    assert unparsed == 0
    assert [{"id": row["id"], "name": row["name"]} for row in found] == documents


def test_a_form_names_the_column_for_who_compares_runs() -> None:
    assert [form.named("value") for form in (Form(), Form(As.text), JSON)] == ["value", "value text", "value json struct<…>"]
