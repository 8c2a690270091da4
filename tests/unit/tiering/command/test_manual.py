"""The pages of the manual, against the commands that they are made of."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tiering import __version__
from tiering.cli import main
from tiering.command.exit_codes import EXIT_MEANS, Exit
from tiering.command.manual import WIDTH, Words, command_of, commands, examples, page
from tiering.command.roff import file_of, roff

ALL = list(commands(main))


def of_every_command(test: Callable[[Words], None]) -> Callable[[Words], None]:
    return pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "tiering")(test)


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^(\S[A-Z ]+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_is_among_the_pages() -> None:
    assert {words[0] for words in ALL if words} == set(main.list_commands(click.Context(main)))
    assert {("manifest", "show"), ("agent", "unit"), ("log", "dump"), ("man",)} < set(ALL)
    assert len(set(ALL)) == len(ALL)


@of_every_command
def test_a_page_has_every_option_with_its_help_and_every_command_below(words: Words) -> None:
    command, found = command_of(main, words), sections(page(main, words))
    assert list(found)[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
    assert " ".join(["tiering", *words]) in found["NAME"]
    options = " ".join(found["OPTIONS"].split())
    for param in command.params:
        if isinstance(param, click.Option):
            assert all(name in options for name in param.opts)
            assert " ".join((param.help or "").split()) in options
    if isinstance(command, click.Group):
        names = [line.strip() for line in found["COMMANDS"].splitlines() if re.match(r" {4}\S", line)]
        assert names == command.list_commands(click.Context(command))


@of_every_command
def test_a_page_says_all_that_the_docstring_says(words: Words) -> None:
    said = command_of(main, words).help
    assert said is not None
    text = set(page(main, words).split())
    assert set(said.replace("\b", "").replace("Examples:", "").split()) <= text


@of_every_command
def test_a_page_is_no_wider_than_a_terminal_but_for_examples(words: Words) -> None:
    found = sections(page(main, words))
    found.pop("EXAMPLES", None)
    assert [line for text in found.values() for line in text.splitlines() if len(line) > WIDTH or line != line.rstrip()] == []


def test_exit_codes_are_those_of_the_table() -> None:
    assert set(EXIT_MEANS) == set(Exit)
    told = sections(page(main, ("offload",)))["EXIT STATUS"].split()
    assert told == [word for code, means in EXIT_MEANS.items() for word in (str(int(code)), *means.split())]


def test_an_option_says_its_default_its_bounds_and_where_else_its_value_comes_from() -> None:
    options = " ".join(sections(page(main, ("offload",)))["OPTIONS"].split())
    setting = "remote.log.manager.copier.thread.pool.size"
    variable = "TIERING_REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE"
    assert (
        f"How many partitions to copy at the same time, up to 64. [default: 4; setting: {setting}; environment: {variable}]"
        in options
    )
    assert "[setting: archive.keys; environment: TIERING_KEYS, TIERING_ARCHIVE_KEYS]" in options
    assert "[environment: TIERING_CONFIG]" in options


def test_settings_that_pages_name_are_settings() -> None:
    from tiering.config.settings import NAMES

    named = {name for words in ALL for name in re.findall(r"setting: ([a-z.]+)", " ".join(page(main, words).split()))}
    assert len(named) >= 10
    assert named <= set(NAMES)


def test_see_also_leads_to_what_a_page_speaks_of_and_to_what_lies_beside_it() -> None:
    assert sections(page(main, ("scrub",)))["SEE ALSO"].split(", ")[-1].split() == ["tiering", "config"]
    beside = " ".join(sections(page(main, ("manifest", "diff")))["SEE ALSO"].split()).split(", ")
    assert {"tiering manifest", "tiering manifest show", "tiering manifest history", "tiering manifest export"} < set(beside)
    assert "tiering manifest diff" not in beside
    assert "tiering sweep" in sections(page(main, ("delete-topic",)))["SEE ALSO"]


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "tiering")
def test_examples_are_command_lines_that_the_command_takes(words: Words, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tiering.toml").write_text('log.dirs = ["/var/lib/kafka"]\narchive.url = "s3://bucket/kafka"\n')
    monkeypatch.chdir(tmp_path)
    for depth in range(1, len(words) + 1):  # everything is read and refused as ever, and nothing is done
        monkeypatch.setattr(command_of(main, words[:depth]), "callback", lambda *_, **__: None)
    for example in examples(main, words):
        assert f"    {example}\n" in sections(page(main, words))["EXAMPLES"]
        (line,) = re.findall(r"tiering ([^|>)]*)", example)
        taken = CliRunner().invoke(main, shlex.split(line), catch_exceptions=False)
        assert (taken.exit_code, taken.stderr) == (0, "")


def test_most_commands_that_do_something_have_an_example() -> None:
    without = {words for words in ALL if not isinstance(command_of(main, words), click.Group) and not examples(main, words)}
    assert without <= {("log", "append"), ("log", "truncate"), ("metrics", "list")}


def test_man_prints_the_page_and_refuses_what_is_no_command() -> None:
    run = CliRunner().invoke
    assert run(main, ["man"]).stdout == page(main)
    assert run(main, ["man", "manifest", "show"]).stdout == page(main, ("manifest", "show"))
    for args, remedy in ((["ofload"], "did you mean offload?"), (["manifest", "shw"], "show"), (["offload", "x"], "tiering man")):
        refused = run(main, ["man", *args])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert remedy in refused.stderr


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_man_renders_the_roff_of_every_page_to_the_same_words(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["man", "--to", str(tmp_path)]).exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {file_of(words) for words in ALL}
    for words in ((), ("offload",), ("fetch",), ("manifest", "show")):
        asked = ["groff", "-man", "-Tascii", "-P-c", "-ww", "-rLL=300n", tmp_path / file_of(words)]
        rendered = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert rendered.stderr == ""
        shown = re.sub(".\b", "", rendered.stdout).split()
        expected = sections(page(main, words))
        assert {word for name, text in expected.items() if name != "NAME" for word in text.split()} <= set(shown)
        assert "-".join(("tiering", *words)) in shown


def test_the_source_of_one_page_is_printed_for_man_l() -> None:
    run = CliRunner().invoke
    assert run(main, ["man", "offload", "--roff"]).stdout == roff(page(main, ("offload",)), ("offload",), __version__)
    assert run(main, ["man", "offload", "--to", "x"]).exit_code == 2
