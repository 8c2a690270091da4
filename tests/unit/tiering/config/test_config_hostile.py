"""Whatever stands in a file or in the environment: a configuration, or lines that say what is wrong, and nothing else."""

import tomllib
from collections.abc import Mapping

from hypothesis import example, given
from hypothesis import strategies as st
from simulated_files import OneFile

from tiering.config.assignment import BadConfig
from tiering.config.config import Config
from tiering.config.load import load_config
from tiering.config.names import KNOWN
from tiering.config.shared import variable_of
from tiering.config.show import as_text, rows, rows_of
from tiering.config.toml_file import read_toml
from tiering.config.topics import OF_TOPICS

NAMES = st.sampled_from(sorted(KNOWN))
WORDS = st.sampled_from(
    ["", "0", "-1", "-2", "1", "true", "False", "nan", "1e9", "a,b", ",", "*", "[", "[]", "[!a]", "s3://b/p", "\x1b[2J", "\0",
     "\ud800", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1_0", "\u0663", "delete,compact",
     "9" * 5000]
)  # fmt: skip
TEXTS = WORDS | st.text(max_size=20)
BASIC = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)


def judged(name: str, body: bytes, environment: Mapping[str, str] | None = None) -> Config | BadConfig:
    """The configuration, or what is wrong, after both have been printed."""
    try:
        config = load_config(name, environment or {}, OneFile(name, body))
    except BadConfig as e:
        refused = e
    else:
        return printed(config)
    assert refused.problems
    for line in str(refused).split("\n"):
        assert line.isprintable()
        assert len(line) < 2000
    return refused


def printed(config: Config) -> Config:
    for row in [*rows(config), *rows_of(config, "t")]:
        assert as_text(row)["value"] is None or as_text(row)["value"].isprintable()
    return config


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    judged("f.toml", body)
    judged("f.properties", body)


@given(st.lists(st.tuples(NAMES | TEXTS, TEXTS), max_size=5))
def test_any_properties_are_read_or_refused(pairs: list[tuple[str, str]]) -> None:
    judged("f.properties", "\n".join(f"{n}={v}" for n, v in pairs).encode("latin-1", "replace"))


@given(st.dictionaries(NAMES.map(variable_of) | BASIC.map(lambda t: f"TIERING_{t}"), TEXTS, max_size=5))
def test_any_environment_is_read_or_refused(environment: dict[str, str]) -> None:
    judged("f.toml", b"", environment)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(
    st.lists(
        st.tuples(NAMES | BASIC, BASIC | st.integers() | st.booleans() | st.floats() | st.lists(BASIC, max_size=3)), max_size=6
    )
)
@example([("log.dirs", ["a", "a"])])
def test_any_toml_is_read_or_refused(pairs: list[tuple[str, object]]) -> None:
    judged("f.toml", "\n".join(f"{quoted(n)} = {literal(v)}" for n, v in pairs).encode())


def literal(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return str(value).lower()


@given(st.text(alphabet="ab=.[]{}\"' #,\n1t\\", max_size=40))
@example("a = [\n]\nb = 1")
@example("[a]\n[a.b]\nc = {d = 1, e = 2}")
def test_the_lines_of_toml_lose_nothing_and_make_nothing_up(text: str) -> None:
    """Cut into statements, a document says what it says as a whole."""
    try:
        whole = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    flat = {f".{'.'.join(path)}" for path, value in leaves(whole) if not isinstance(value, list)}
    parsed = read_toml(text, "f")
    found = {f".{f'topic.{a.topics}.' if a.topics else ''}{a.name}" for a in parsed.assignments if isinstance(a.value, str)}
    if not parsed.problems:
        assert found == flat
    lines = text.count("\n") + 1
    assert all(1 <= (a.place.line or 0) <= lines for a in parsed.assignments)


def leaves(tree: dict[str, object]) -> list[tuple[tuple[str, ...], object]]:
    found: list[tuple[tuple[str, ...], object]] = []
    for name, value in tree.items():
        if isinstance(value, dict):
            found += [((name, *path), leaf) for path, leaf in leaves(value)]
        elif not (isinstance(value, list) and value and isinstance(value[0], dict)):
            found.append(((name,), value))
    return found


@given(st.sampled_from(OF_TOPICS), st.text(alphabet="ab.*?[]!-_", min_size=1, max_size=8), st.integers(-3, 9))
def test_a_pattern_of_topics_says_the_same_in_toml_and_in_properties(name: str, pattern: str, value: int) -> None:
    toml = judged("f.toml", f'[topic."{pattern}"]\n{name} = {value}'.encode())
    properties = judged("f.properties", f"topic.{pattern}.{name}={value}".encode())
    assert type(toml) is type(properties)
    ambiguous = pattern.endswith("local")
    if isinstance(toml, Config) and isinstance(properties, Config) and not ambiguous:
        told = [[(a.topics, a.name, a.value) for a in c.of_topics] for c in (toml, properties)]
        assert told[0] == told[1]
