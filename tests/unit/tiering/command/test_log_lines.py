"""The log of a command that runs for long: as for a person, or a line an event with time, level and fields."""

import json

import pytest
from archive_fakes import FixedClock

from tiering.command.log_lines import LogLines


def lines(form: str | None, capsys: pytest.CaptureFixture[str]) -> list[str]:
    log = LogLines(form, FixedClock(1_700_000_000_123))
    log.info("the agent runs")
    log.problem("orders-0: \x1b[2Jthe store\ndoes not respond")
    log.event("copied all that was due", {"segments": 2, "bytes": 300})
    return capsys.readouterr().err.splitlines()


def test_without_a_format_a_person_is_told_what_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(None, capsys) == ["tiering: the agent runs", "tiering: orders-0: \\x1b[2Jthe store\\ndoes not respond"]


def test_text_has_time_level_and_fields_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines("text", capsys) == [
        "2023-11-14T22:13:20.123Z INFO the agent runs",
        "2023-11-14T22:13:20.123Z WARN orders-0: \\x1b[2Jthe store\\ndoes not respond",
        "2023-11-14T22:13:20.123Z INFO copied all that was due segments=2 bytes=300",
    ]


def test_json_has_an_object_for_each_event(capsys: pytest.CaptureFixture[str]) -> None:
    last = json.loads(lines("json", capsys)[-1])
    assert last == {
        "time": "2023-11-14T22:13:20.123Z", "level": "info", "message": "copied all that was due", "segments": 2, "bytes": 300,
    }  # fmt: skip
