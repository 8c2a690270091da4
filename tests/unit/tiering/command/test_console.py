"""Rows on standard output: what was read before an error is printed before it, in each of the three forms."""

import io
import json
from collections.abc import Iterator

import pytest

from tiering.command.output import Row, as_json, emit, say


class Stopped(Exception):
    """What ends the rows."""


def rows_then_an_error(count: int) -> Iterator[Row]:
    for number in range(count):
        yield {"number": number}
    raise Stopped


@pytest.mark.parametrize("count", [0, 3, 1000, 1001])
@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_rows_before_an_error_are_printed(capsys: pytest.CaptureFixture[str], output: str, count: int) -> None:
    with pytest.raises(Stopped):
        emit(rows_then_an_error(count), output)
    printed = capsys.readouterr().out
    if output == "json":
        numbers = [row["number"] for row in json.loads(printed)]
    elif output == "jsonl":
        numbers = [json.loads(line)["number"] for line in printed.splitlines()]
    else:
        numbers = [int(line) for line in printed.splitlines() if line.strip() != "number"]
    assert numbers == list(range(count))


def test_a_reader_that_goes_away_is_the_only_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("click.echo", gone)
    for output in ("table", "json", "jsonl"):
        with pytest.raises(BrokenPipeError):
            emit(iter([{"number": 1}] * 1500), output)


HOSTILE = "\x1b]0;owned\x07 \x1b[2J\r\nfake line\x9b31m \u202eright to left\u2069 \x00\x7f \u2028 \ud800"


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_what_a_terminal_would_obey_is_written_out(capsys: pytest.CaptureFixture[str], output: str) -> None:
    emit([{"reason": HOSTILE, "number": 1}, {"reason": "Größe, 大きさ, مقاس", "number": 2}], output)
    printed = capsys.readouterr().out
    assert not {c for c in printed if not c.isprintable()} - {"\n"}
    if output == "table":
        assert len(printed.splitlines()) == 3
        assert "\\x1b]0;owned\\x07 \\x1b[2J\\r\\nfake line\\x9b31m \\u202eright" in printed
        assert "Größe, 大きさ, مقاس" in printed
    else:
        rows = json.loads(printed) if output == "json" else [json.loads(line) for line in printed.splitlines()]
        assert [row["reason"] for row in rows] == [HOSTILE, "Größe, 大きさ, مقاس"]
        assert "Größe, 大きさ, مقاس" in printed, "as it is, for grep and for people"


def test_json_is_of_ascii_where_standard_output_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    latin = io.TextIOWrapper(io.BytesIO(), "iso-8859-1")
    monkeypatch.setattr("sys.stdout", latin)
    assert as_json({"city": "Köln", "sign": "東"}) == '{"city": "K\\u00f6ln", "sign": "\\u6771"}'


def test_a_message_is_one_line_without_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"tiering: {HOSTILE}")
    said = capsys.readouterr().err
    assert said.endswith("\n")
    assert said[:-1].isprintable()
