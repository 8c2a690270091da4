"""The three sources: TOML, Kafka's properties, the environment; what each says, and on which line."""

from pathlib import Path

import pytest
from config_files import loaded, problems, written

from tiering.config.assignment import Assignment, Place
from tiering.config.environment import read_environment
from tiering.config.names import KNOWN
from tiering.config.properties_file import read_properties
from tiering.config.shared import variable_of
from tiering.config.toml_file import read_toml
from tiering.config.topics import OF_TOPICS


def said(text: str) -> list[tuple[int | None, str | None, str, object]]:
    parsed = read_toml(text, "f")
    assert parsed.problems == ()
    return [(a.place.line, a.topics, a.name, a.value) for a in parsed.assignments]


def test_dotted_names_quoted_names_and_tables_mean_the_same() -> None:
    for text in ("a.b.c = 1", '"a.b.c" = 1', "[a]\nb.c = 1", "[a.b]\nc = 1", 'a = { "b.c" = 1 }', "['a.b']\nc = 1"):
        [(_, topics, name, value)] = said(text)
        assert (topics, name, value) == (None, "a.b.c", "1")


def test_each_setting_has_the_line_that_its_statement_begins_on() -> None:
    text = '# a comment\n\na = [\n  "x", # with ] in it\n  "y",\n]\r\nb = """\n[t]\nc = 1\n"""\n'
    text += '[t] # a table\n\n  d = true\n[topic."x.*"]\ne=1.5'
    assert said(text) == [
        (3, None, "a", ("x", "y")),
        (7, None, "b", "[t]\nc = 1\n"),
        (13, None, "t.d", "true"),
        (15, "x.*", "e", "1.5"),
    ]


def test_what_is_not_toml_is_told_by_its_line_and_nothing_of_it_is_repeated() -> None:
    [problem] = read_toml('a = 1\nb = "hunter2\n', "f").problems
    assert "not TOML" in str(problem)
    assert "line 2" in str(problem)
    assert "hunter2" not in str(problem)


@pytest.mark.parametrize("value", ["2026-11-21", "[[1]]", "[{ a = 1 }]", "12:00:00"])
def test_a_value_of_a_kind_that_no_setting_has_is_refused(value: str) -> None:
    parsed = read_toml(f"retention.ms = {value}", "f")
    assert [str(p) for p in parsed.problems] == ["f:1: retention.ms: expected text, a number, true, false or a list of texts"]


def test_a_setting_right_under_topic_is_told_where_it_belongs() -> None:
    assert '[topic."PATTERN"]' in str(read_toml("topic.x = 1", "f").problems[0])


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1\nb: 2\nc 3\n d = 4 ", [(1, "a", "1"), (2, "b", "2"), (3, "c", "3"), (4, "d", "4 ")]),
        ("# a\n! b\n\n  # c\na=#1", [(5, "a", "#1")]),
        ("a = x,\\\n    y\nb=1", [(1, "a", "x,y"), (3, "b", "1")]),
        ("a=1\\\\\nb=2", [(1, "a", "1\\"), (2, "b", "2")]),
        ("a\\ b\\=c = d", [(1, "a b=c", "d")]),
        ("a=\\u00e9\\t\\q", [(1, "a", "\xe9\tq")]),
        ("a=\\ud83d\\ude00", [(1, "a", "\N{GRINNING FACE}")]),
        ("a", [(1, "a", "")]),
        ("a=b=c:d", [(1, "a", "b=c:d")]),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, pairs: list[tuple[int, str, str]]) -> None:
    parsed = read_properties(text, "f", OF_TOPICS)
    assert [(a.place.line, a.name, a.value) for a in parsed.assignments] == pairs


def test_properties_name_a_topic_s_pattern_before_the_longest_setting() -> None:
    text = "topic.a.b*.retention.ms=1\ntopic.c.local.retention.ms=2\ntopic.d.segment.bytes=3"
    found = [(a.topics, a.name) for a in read_properties(text, "f", OF_TOPICS).assignments]
    assert found == [("a.b*", "retention.ms"), ("c", "local.retention.ms"), ("d", "segment.bytes")]


@pytest.mark.parametrize("escape", ["\\u12", "\\uzzzz", "\\ud800"])
def test_half_an_escape_is_refused_with_its_line(escape: str) -> None:
    [problem] = read_properties(f"a=1\nb={escape}", "f", OF_TOPICS).problems
    assert str(problem) == r"f:2: malformed \u: expected four hexadecimal digits"


def test_bytes_of_properties_are_latin_1_as_kafka_reads_them(tmp_path: Path) -> None:
    file = written(tmp_path, b"log.dirs=/data/caf\xe9", "tiering.properties")
    assert loaded(file).settings.log_dirs == ("/data/caf\xe9",)


def test_a_byte_order_mark_and_other_line_ends_are_no_part_of_toml(tmp_path: Path) -> None:
    file = written(tmp_path, b"\xef\xbb\xbfretention.ms = 1\r\nretention.bytes = 2\r\n")
    assert [str(a.place) for a in loaded(file).of_topics] == [f"{file}:1", f"{file}:2"]


def test_bytes_that_are_not_utf_8_are_told_by_their_line(tmp_path: Path) -> None:
    assert problems(written(tmp_path, b'a = "x"\nb = "\xff"')) == ["tiering.toml:2: not UTF-8, as TOML has to be"]


@pytest.mark.parametrize("name", ["tiering.yaml", "tiering", "tiering.TOML"])
def test_a_file_whose_name_does_not_say_what_it_is_is_refused(tmp_path: Path, name: str) -> None:
    assert "name the file NAME.toml or NAME.properties" in problems(written(tmp_path, "", name))[0]


def test_a_file_that_is_not_there_or_too_large_is_told_with_its_name(tmp_path: Path) -> None:
    assert "no such file" in problems(str(tmp_path / "none.toml"))[0]
    assert "expected 1048576 at most" in problems(written(tmp_path, b"#" * (1 << 20) + b"\n"))[0]
    folder = tmp_path / "folder.toml"
    folder.mkdir()
    assert "folder.toml" in problems(str(folder))[0]


def test_every_setting_has_a_variable_of_its_own() -> None:
    assert len({variable_of(name) for name in KNOWN}) == len(KNOWN)
    for name in KNOWN:
        assert read_environment({variable_of(name): "v"}).assignments == (Assignment(name, "v", Place(variable_of(name))),)


def test_no_setting_s_name_is_the_table_that_another_lies_in_but_for_kafka_s_limits_of_connections() -> None:
    limits = ("max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides")
    both = {(a, b) for a in KNOWN for b in KNOWN if b.startswith(f"{a}.")}
    assert both == {(a, b) for a in limits for b in limits if len(a) < len(b)}
    parsed = read_toml("".join(f'"{name}" = 5\n' for name in limits), "f.toml")
    assert [(a.name, a.value) for a in parsed.assignments] == [(name, "5") for name in limits]


def test_an_empty_variable_is_not_given_and_others_are_not_looked_at() -> None:
    assert read_environment({"TIERING_ARCHIVE_URL": "", "ARCHIVE_URL": "x", "TIERING_CONFIG": "y"}).assignments == ()


def test_two_variables_for_the_keys_are_fine_as_long_as_they_agree() -> None:
    [a] = read_environment({"TIERING_KEYS": "k", "TIERING_ARCHIVE_KEYS": "k"}).assignments
    assert (a.name, a.value) == ("archive.keys", "k")
    [problem] = read_environment({"TIERING_KEYS": "k", "TIERING_ARCHIVE_KEYS": "l"}).problems
    assert "TIERING_ARCHIVE_KEYS" in str(problem)


def test_what_kubernetes_and_key_rings_put_into_the_environment_is_no_typing_error() -> None:
    theirs = {
        "TIERING_SERVICE_HOST": "10.0.0.1", "TIERING_SERVICE_PORT": "80", "TIERING_PORT": "tcp://10.0.0.1:80",
        "TIERING_PORT_80_TCP_ADDR": "10.0.0.1", "TIERING_AGENT_SERVICE_PORT_HTTP": "80", "TIERING_KEY_RING": '{"current": "a"}',
    }  # fmt: skip
    assert read_environment(theirs).problems == ()
    assert read_environment(theirs).assignments == ()
