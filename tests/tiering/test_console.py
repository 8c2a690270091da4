"""Rows on standard output: what was read before an error is printed before it, in each of the three forms."""

import json
from collections.abc import Iterator

import pytest

from tiering.console import Row, emit


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
