"""Tables as wide as a terminal: nothing is lost but what may be cut, and no line is wider."""

import os
import pty
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering.command.records import CUT
from tiering.command.table import Table, beside
from tiering.command.terminal import alarming, width_of

ROWS = [
    {"topic": "orders", "partition": n, "log_start_offset": 10**9, "local_log_start_offset": n, "archived_bytes": 5, "reason": r}
    for n, r in enumerate(["", "the segment contradicts the archive: its epoch 7 starts at 4711"])
]


def lines(rows: list[dict[str, Any]], width: int | None = None, cut: Mapping[str, int] = {}) -> list[str]:
    return list(Table(width, cut).lines(rows))


def test_what_fits_is_as_wide_as_its_cells() -> None:
    assert lines(ROWS, 200) == lines(ROWS)
    assert len(lines(ROWS)) == 3


def test_names_break_behind_an_underscore_and_texts_go_on_below() -> None:
    shown = lines(ROWS, 80)
    assert max(map(len, shown)) <= 80
    assert shown[0].split() == ["topic", "partition", "log_start_", "local_log_", "archived_bytes", "reason"]
    assert shown[1].split() == ["offset", "start_offset"]
    reason = [line[shown[0].index("reason") :] for line in shown[3:]]
    assert " ".join(reason) == ROWS[1]["reason"]


def test_columns_that_do_not_fit_at_all_are_shown_below_with_what_says_which_row_it_is() -> None:
    shown = lines(ROWS, 40)
    assert max(map(len, shown)) <= 40
    heads = [line.split() for line in shown if line.startswith("topic")]
    assert len(heads) > 1
    assert all(head[:2] == ["topic", "partition"] for head in heads)


def test_a_row_is_not_repeated_where_there_is_nothing_more_to_say_of_it() -> None:
    rows = [{"topic": "orders", "partition": n, "bytes": 10**19, "error": error} for n, error in enumerate(["", "not readable"])]
    assert [line.split() for line in lines(rows, 36)] == [
        ["topic", "partition", "bytes"],
        ["orders", "0", "10000000000000000000"],
        ["orders", "1", "10000000000000000000"],
        [],
        ["topic", "partition", "error"],
        ["orders", "1", "not", "readable"],
    ]
    assert len(lines(rows[:1], 36)) == 2, "no head of no row"


def test_texts_that_may_be_cut_are_cut_first() -> None:
    rows = [{"offset": 1, "value": "v" * 500, "reason": "a few words"}]
    (_, line) = lines(rows, 40, {"value": 8})
    assert line == "     1  " + "v" * 18 + "…  a few words"
    assert len(lines(rows, None, {"value": 8})[1].split()[1]) == 60


RECORD = {"partition": 3, "offset": 104711, "timestamp": "2026-11-20T10:00:00.123Z", "key": "customer-17", "value": "v" * 500}


def test_values_have_room_on_a_terminal_of_80_columns() -> None:
    head, line = lines([{**RECORD, "headers": ""}], 80, CUT)
    assert head.split() == ["partition", "offset", "timestamp", "key", "value"], "no headers where no record has any"
    assert line.split()[2:] == [RECORD["timestamp"], RECORD["key"], "v" * 21 + "…"]
    assert len(line) == 80
    below = lines([{**RECORD, "headers": "source=web, trace=4711"}], 80, CUT)
    assert below[1].endswith("v…")
    assert len(below[1]) == 80
    assert [line.split() for line in below[2:]] == [
        [],
        ["partition", "offset", "headers"],
        ["3", "104711", "source=web,", "trace=4711"],
    ]
    assert len(lines([{**RECORD, "headers": "source=web, trace=4711"}], 120, CUT)) == 2
    assert lines([{**RECORD, "headers": ""}], None, CUT)[0].split()[-1] == "headers", "programs find the columns that they know"


def test_a_column_that_was_shown_stays_where_it_is_empty_later() -> None:
    table = Table(80, CUT)
    shown = [list(table.lines([{"offset": n, "headers": headers}])) for n, headers in enumerate(["", "a=b", ""])]
    assert [len(block) for block in shown] == [2, 2, 1]


def test_a_head_is_repeated_only_where_columns_become_wider() -> None:
    table = Table()
    blocks = [[{"offset": 10, "key": "abc"}], [{"offset": 9, "key": "a"}], [{"offset": 10**8, "key": "a"}]]
    shown = [list(table.lines(block)) for block in blocks]
    assert [len(block) for block in shown] == [2, 1, 2]
    assert shown[1] == ["     9  a"]


def test_a_text_goes_on_below_itself_beside_its_label() -> None:
    assert beside("lost    ", "2581 offsets, known since then", 24) == ["lost    2581 offsets,", "        known since then"]
    assert beside("lost    ", "2581 offsets, known since then", None) == ["lost    2581 offsets, known since then"]


def test_wide_characters_take_two_columns_and_accents_none() -> None:
    assert [width_of(text) for text in ("abc", "東京", "e\u0301", "Köln", "👍")] == [3, 4, 1, 4, 2]
    rows = [{"city": "東京都庁", "n": 1}, {"city": "Köln", "n": 2}]
    assert lines(rows) == ["city      n", "東京都庁  1", "Köln      2"]


def test_lines_of_what_is_lost_alarm_and_no_others() -> None:
    rows = [{"action": "copied", "reason": ""}, {"action": "lost", "reason": "offsets [0, 5) are lost"}]
    shown = list(Table(40, alarm=lambda line: f"!{line}").lines(rows))
    assert [line.startswith("!lost") for line in shown] == [False, False, True]
    anomalies = list(Table(40, alarm=lambda line: f"!{line}").lines([{"kind": "lost"}, {"kind": "gap"}]))
    assert anomalies == ["kind", "!lost", "gap"]


def test_what_alarms_is_red_on_a_terminal_alone_and_not_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal, open(os.devnull, "w") as file:
        assert alarming("FAIL", terminal) == "\x1b[1;31mFAIL\x1b[0m"
        assert alarming("FAIL", file) == "FAIL"
        monkeypatch.setenv("NO_COLOR", "1")
        assert alarming("FAIL", terminal) == "FAIL"
    os.close(ours)


CELL = st.one_of(st.none(), st.integers(0, 10**6), st.text("ab 東é", max_size=200))


@given(
    st.lists(st.fixed_dictionaries({"topic": CELL, "log_start": CELL, "reason": CELL}), min_size=1, max_size=4),
    st.integers(100, 140),
)
def test_no_text_is_lost_and_no_line_is_too_wide(rows: list[dict[str, Any]], width: int) -> None:
    shown = lines(rows, width)
    assert max(map(width_of, shown)) <= width
    said = re.sub(r"\s|topic|log_|start|reason", "", "".join(shown))
    given_text = "".join(str(value) for row in rows for value in row.values() if value is not None)
    assert sorted(said) == sorted(re.sub(r"\s", "", given_text))
