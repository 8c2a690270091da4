"""`tiering fetch` as people use it: texts, the ends of a log, times, keys, forms as of kcat, all partitions, what arrives."""

import json
from base64 import b64decode
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

import mixed_topic
import pytest
from click.testing import Result
from golden_logs import broker_logs
from mixed_topic import AT_MS, BINARY, HOSTILE, RECORDS, TOPIC

from tiering.command.records import parse_format, payload_of
from tiering.command.start_option import End
from tiering.command.topic_records import TopicRecords
from tiering.read.tiered_log import Isolation
from tiering.wiring import open_tiers

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return mixed_topic.log_dir(tmp_path / "mixed")


@pytest.fixture
def fetch(folder: Path) -> tuple[object, ...]:
    return "fetch", "--log-dir", folder, "--topic", TOPIC


def places(rows: list[Row]) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in rows]


def test_text_is_text_in_json_and_what_is_none_says_that_it_is_base64(rows: Rows, fetch: tuple[object, ...]) -> None:
    found = {(row["partition"], row["offset"]): row for row in rows(*fetch)}
    assert len(found) == 7
    for partition, records in RECORDS.items():
        for offset, given in enumerate(records):
            for name, body in zip(("key", "value"), given, strict=True):
                shown = found[partition, offset][name]
                if isinstance(shown, dict):
                    assert b64decode(shown["base64"]) == body
                    with pytest.raises(UnicodeDecodeError):
                        body.decode()
                else:
                    assert (shown is None and body is None) or shown.encode() == body
    assert found[0, 0]["headers"] == [["trace", "a1"], ["raw", {"base64": "AAH+/w=="}]]


def test_base64_is_for_all_bytes_where_it_is_asked_for(rows: Rows, fetch: tuple[object, ...]) -> None:
    found = rows(*fetch, "--encoding", "base64", "--partition", 0)
    bodies = [tuple(None if row[n] is None else b64decode(row[n]) for n in ("key", "value")) for row in found]
    assert bodies == list(RECORDS[0])


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (("--offset", "earliest"), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]),
        (("--offset", "latest"), []),
        (("--offset", "-0"), []),
        (("--offset", "-1"), [(0, 3), (1, 2)]),
        (("--offset", "-99", "--partition", 1), [(1, 0), (1, 1), (1, 2)]),
        (("--offset", 2, "--partition", 0), [(0, 2), (0, 3)]),
        (("--from-time", AT_MS + 1500), [(0, 2), (0, 3), (1, 2)]),
        (("--from-time", "2023-11-14T22:13:22Z"), [(0, 2), (0, 3), (1, 2)]),
        (("--from-time", "now"), []),
        (("--key", "customer-17"), [(0, 0), (0, 3), (1, 1)]),
        (("--key-hex", BINARY.hex()), [(0, 2)]),
        (("--key", ""), [(1, 2)]),
        (("--key", "customer-17", "--max-records", 2), [(0, 0), (0, 3)]),
        (("--max-records", 5), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]),
    ],
    ids=str,
)
def test_a_read_starts_where_people_say(
    rows: Rows, fetch: tuple[object, ...], start: tuple[object, ...], expected: list[tuple[int, int]]
) -> None:
    assert places(rows(*fetch, *start)) == expected


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--offset", 1), "give --partition"),
        (("--offset", "first"), "earliest, latest"),
        (("--offset", "-1", "--from-time", "-2h"), "leave one of them out"),
        (("--format", "%s", "--output", "jsonl"), "leave one of them out"),
        (("--format", "%y"), "%y means nothing"),
        (("--format", r"\q"), "means nothing"),
        (("--key", "a", "--key-hex", "61"), "only one of them"),
        (("--key-hex", "6"), "not hexadecimal"),
        (("--follow", "--output", "json"), "--output jsonl"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_a_usage_error(run: Run, fetch: tuple[object, ...], wrong: tuple[object, ...], said: str) -> None:
    refused = run(*fetch, *wrong)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert said in " ".join(refused.stderr.split())


def test_a_form_prints_the_bytes_as_kcat_does(run: Run, fetch: tuple[object, ...]) -> None:
    form = r"%t/%p@%o %T %%%k:%K=%S\x3b%h\n"
    printed = run(*fetch, "--partition", 0, "--offset", 2, "--format", form).stdout_bytes
    headers = b"trace=a1,raw=" + BINARY
    assert printed == (
        b"mixed/0@2 1700000002000 %"
        + BINARY
        + b":4=80;"
        + headers
        + b"\nmixed/0@3 1700000003000 %customer-17:11=-1;"
        + headers
        + b"\n"
    )
    sized = run(*fetch, "--partition", 0, "--offset", 2, "--format", "%R%s").stdout_bytes
    assert sized == (80).to_bytes(4) + BINARY * 20 + b"\xff" * 4


def test_a_terminal_gets_no_byte_that_it_would_obey() -> None:
    form = parse_format(r"%k %s %h\n")
    record = {"offset": 0, "timestamp": 0, "key": BINARY, "value": HOSTILE, "headers": [{"key": b"\x07", "value": None}]}
    shown = form.of("t", 0, record, payload_of("text", for_terminal=True)).decode()
    assert shown == "\\x00\\x01\\xfe\\xff \\x1b]0;owned\\x07\\x1b[2J\\r\\nfake line\\x9b \\x07=NULL\n"


def test_a_table_shows_text_and_writes_out_what_a_terminal_would_obey(run: Run, fetch: tuple[object, ...]) -> None:
    head, *lines = run(*fetch).stdout.splitlines()
    assert head.split() == ["partition", "offset", "timestamp", "key", "value", "headers"]
    assert len(lines) == 7
    assert '{"city": "Köln", "amount": 12}' in lines[0]
    assert "base64:AAH+/w==" in lines[2]
    assert "\\x1b[31mred" in lines[4]
    assert "partition" not in run(*fetch, "--partition", 0).stdout.splitlines()[0]


class Arriving:
    """A clock, during whose sleeps records arrive."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.slept = folder, list[float]()

    def now_ms(self) -> int:
        return AT_MS

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 2:
            mixed_topic.append(self.folder, 1, 3, b"later", b"1")
        if len(self.slept) == 3:
            mixed_topic.append(self.folder, 0, 4, b"later", b"2")
            mixed_topic.append(self.folder, 1, 4, b"later", b"3")


@pytest.mark.parametrize(("start", "expected"), [(End.latest, [b"1", b"2", b"3"]), (-1, [None, b"", b"1", b"2", b"3"])])
def test_a_read_that_follows_gives_each_record_that_arrives_once(
    folder: Path, start: int | End, expected: list[bytes | None]
) -> None:
    read = TopicRecords(
        tiers=open_tiers(str(folder), None), topic=TOPIC, topic_id=None, partition=None, start=start, from_ms=None,
        isolation=Isolation.read_uncommitted, key=None,
    )  # fmt: skip
    clock = Arriving(folder)
    found = takewhile(lambda part: part is not None or len(clock.slept) < 6, read.follow(read.opened(), clock))
    assert [value for part in found if part for value in part[1].column("value").to_pylist()] == expected
    assert clock.slept == [1.0] * 6


def test_a_read_that_follows_ends_with_the_last_record_that_was_asked_for(run: Run, fetch: tuple[object, ...]) -> None:
    ended = run(*fetch, "--follow", "--offset", "-1", "--max-records", 2, "--output", "jsonl")
    assert places([json.loads(line) for line in ended.stdout.splitlines()]) == [(0, 3), (1, 2)]


def test_a_topic_of_which_nothing_is_archived_yet_is_not_said_to_be_missing_among_those_that_are_there(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    logs, archive = broker_logs(tmp_path / "logs", "g-mixed-0", "g-txn-0"), tmp_path / "archive"
    assert run("offload", "--log-dir", logs, "--archive", archive, "--state-dir", tmp_path / "state").exit_code == 0
    refused = run("fetch", "--archive", archive, "--topic", "g-mixed")
    assert refused.exit_code != 0
    assert "nothing of topic g-mixed is archived" in refused.stderr
    assert "there are: g-mixed" in run("fetch", "--archive", archive, "--topic", "g-none").stderr
