"""What the Python API shows in a notebook: coverage as a table, and the progress of a read."""

from copy import copy

import pyarrow as pa
import pytest

from tiering.api import Reader
from tiering.notebooks import ROWS_MAX, ShownTable


def test_a_notebook_shows_coverage_as_a_table_whose_texts_are_escaped(reader: Reader) -> None:
    html = reader.coverage("g-txn", "g-mixed")._repr_html_()
    assert html.count("<tr>") == 3
    assert "<td>g-txn</td>" in html
    assert "<th>gaps</th>" not in html, "nothing is missing"
    made = ShownTable(pa.table({"error": ["<script>"], "n": [1_234_567], "gaps": [[{"start": 1, "end": 2, "reason": "<b>"}]]}))
    assert "<script>" not in made._repr_html_()
    assert "&lt;script&gt;" in made._repr_html_()
    assert '<td style="text-align: right">1,234,567</td><td>[1, 2) &lt;b&gt;</td>' in made._repr_html_()


def test_a_shown_table_is_a_table_to_whatever_takes_one(reader: Reader) -> None:
    shown = reader.coverage()
    assert pa.table(shown).equals(shown.table)
    assert (len(shown), shown.num_rows, shown["topic"]) == (len(shown.table), len(shown.table), shown.table["topic"])
    assert shown == shown.table
    assert copy(shown) == shown
    assert pytest.importorskip("polars").DataFrame(shown).height == len(shown)
    count = pytest.importorskip("duckdb").sql("select count(*) from shown").fetchall()
    assert count == [(len(shown),)]


def test_long_tables_are_shown_in_part() -> None:
    html = ShownTable(pa.table({"n": range(ROWS_MAX + 7)}))._repr_html_()
    assert html.count("<tr>") == ROWS_MAX + 1
    assert "7 more rows" in html


def test_progress_is_shown_as_it_is_wanted_and_changes_no_record(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    table = reader.read("g-mixed", progress=True).read_all()
    assert "g-mixed: 100%" in capsys.readouterr().err
    assert table.equals(reader.read("g-mixed", progress=False).read_all())
    assert table.equals(reader.read("g-mixed").read_all())
    assert capsys.readouterr().err == "", "this is no notebook"
    assert reader.read("g-mixed", start_time="now", progress=True).read_all().num_rows == 0
    assert capsys.readouterr().err == "", "nothing is read"
