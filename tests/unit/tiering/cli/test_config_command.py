"""`tiering config check` and `show`, and what `--config` gives to the other commands."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from local_log.errors import Unreadable
from local_log.os_disk import OsDisk
from tiering.config import paths as config_paths
from tiering.config.load import load_config

Run = Callable[..., Result]
Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def config(tmp_path: Path, broker: Path, url: str) -> Callable[..., str]:
    """Writes a configuration of the golden log directory and an archive, with more lines."""

    def write(*lines: str) -> str:
        file = tmp_path / "tiering.toml"
        file.write_text("\n".join((f"log.dirs = ['{broker}']", f"archive.url = '{url}'", *lines)))
        return str(file)

    return write


# check and show


def test_a_sound_configuration_is_said_to_be_sound_and_nothing_is_made(run: Run, config: Callable[..., str], url: str) -> None:
    file = config()
    checked = run("config", "check", file)
    assert (checked.exit_code, checked.stdout, checked.stderr) == (0, "", f"tiering: {file} is valid\n")
    assert not Path(url).exists()


@pytest.mark.parametrize("verb", ["check", "show"])
def test_every_error_is_a_line_and_the_exit_code_is_usage(run: Run, config: Callable[..., str], verb: str) -> None:
    file = config("retention.m = 1", "archive.keys = 's3://me:hunter2@b'", "sweep.grace.ms = -1")
    refused = run("config", verb, file)
    assert (refused.exit_code, refused.stdout) == (2, "")
    lines = refused.stderr.splitlines()
    assert [line.split(": ")[1] for line in lines] == [f"{file}:{n}" for n in (3, 4, 5)]
    assert "hunter2" not in refused.stderr


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("missing", "{path}: no such folder; give the broker's own log.dirs"),
        ("below a file", "{path}: no such folder; give the broker's own log.dirs"),
        ("a file", "{path} is a file; give the folder that is"),
        ("empty", "{path}: no partition there; a broker's own log.dirs has a folder for each"),
    ],
)
def test_a_log_directory_that_cannot_be_one_is_told_by_its_line(
    run: Run, broker: Path, tmp_path: Path, kind: str, said: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    path = tmp_path / {"missing": "gone", "below a file": "file/x", "a file": "file", "empty": "empty"}[kind]
    file = tmp_path / "tiering.properties"
    file.write_text(f"archive.url=archive\nlog.dirs={broker},{path}\n")
    checked = run("config", "check", file)
    assert (checked.exit_code, checked.stdout) == (2, "")
    (line,) = checked.stderr.splitlines()
    assert line.startswith(f"tiering: {file}:2: log.dirs: " + said.format(path=path))


def test_a_log_directory_that_cannot_be_read_is_told(config: Callable[..., str], broker: Path) -> None:
    class Shut(OsDisk):
        def names(self, folder: str) -> list[str]:
            if folder.endswith(shut):
                raise Unreadable(f"{folder}: Permission denied; give this user the right to it")
            return super().names(folder)

    told = load_config(config(), {}, OsDisk())
    for shut in (str(broker), "g-txn-0"):
        (problem,) = config_paths.problems(told, Shut())
        assert str(problem).endswith(f"{shut}: Permission denied; give this user the right to it")


@pytest.mark.parametrize("must_exist", [True, False])
def test_a_folder_archive_that_is_not_there_is_told_unless_it_may_be_made(
    run: Run, config: Callable[..., str], url: str, must_exist: bool
) -> None:
    file = config(f"archive.must.exist = {str(must_exist).lower()}")
    for says in ("no such folder", "no archive there"):
        checked = run("config", "check", file)
        assert checked.exit_code == (2 if must_exist else 0)
        assert (f"{file}:2: archive.url: {url}: {says}, and archive.must.exist=true makes none" in checked.stderr) == must_exist
        Path(url).mkdir(exist_ok=True)
    Path(url).rmdir()
    Path(url).touch()
    assert f"{file}:2: archive.url: {url} is a file" in run("config", "check", file).stderr


def test_an_archive_in_the_log_directory_and_a_key_file_that_is_missing_are_told(run: Run, broker: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text(f"log.dirs = '{broker}'\narchive.url = '{broker}/archive'\narchive.keys = '/nowhere/keys.json'")
    first, second = run("config", "check", file).stderr.splitlines()
    assert ("t.toml:2: archive.url: " in first, "are inside each other" in first) == (True, True)
    assert "t.toml:3: archive.keys: key file '/nowhere/keys.json' cannot be read" in second


def test_where_nothing_is_given_that_is_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text("# nothing yet\n")
    for given in ((), (file,)):
        checked = run("config", "check", *given)
        assert (checked.exit_code, checked.stdout) == (2, "")
        assert checked.stderr.startswith("tiering: no settings given: ")


def test_an_address_that_names_no_store_is_told_by_its_line(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text("\narchive.url = 'gopher://hole'")
    refused = run("config", "check", file)
    assert refused.exit_code == 2
    assert f"{file}:2: archive.url:" in refused.stderr


def test_show_says_every_value_and_where_it_comes_from(
    run: Run, config: Callable[..., str], broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIERING_SWEEP_GRACE_MS", "5")
    monkeypatch.setenv("TIERING_CONFIG", config("[topic.'g-*']", "retention.ms = 7"))
    file = config("[topic.'g-*']", "retention.ms = 7")
    shown = run("config", "show", "--output", "json")
    rows = {row["setting"]: (row["value"], row["source"]) for row in json.loads(shown.stdout)}
    assert rows["log.dirs"] == ([str(broker)], f"{file}:1")
    assert rows["sweep.grace.ms"] == (5, "TIERING_SWEEP_GRACE_MS")
    assert rows["archive.must.exist"] == (False, "default")
    assert rows["retention.ms"] == (None, "default")
    assert rows["topic.g-*.retention.ms"] == (7, f"{file}:4")
    for shown in (run("config", "show", file).stdout, run("config", "show", file, "--topic", "orders").stdout):
        lines = [line.split(maxsplit=1) for line in shown.splitlines()]
        unset = {name: value for name, value in lines if name in ("retention.ms", "retention.bytes")}
        assert {value.rpartition(")")[0] for value in unset.values()} == {"(not set: keeps everything"}


def test_show_of_a_topic_says_what_counts_for_it(rows: Rows, run: Run, config: Callable[..., str]) -> None:
    file = config("topics.exclude = ['*.tmp']", "[topic.'a*']", "local.retention.bytes = -1", "retention.ms = 7")
    found = {row["setting"]: row for row in rows("config", "show", file, "--topic", "ab")}
    assert (found["archived"]["value"], found["retention.ms"]["value"]) == (True, 7)
    assert found["retention.ms"]["source"] == f"{file}:6 (a*)"
    excluded = rows("config", "show", file, "--topic", "a.tmp")[0]
    assert excluded["value"] is False
    assert f"{file}:3" in excluded["source"]
    table = run("config", "show", file, "--topic", "ab").stdout
    assert "archived" in table
    assert "true" in table


# What the other commands take of it


def test_a_configuration_stands_for_the_options_of_a_command(rows: Rows, run: Run, config: Callable[..., str], url: str) -> None:
    file = config("topics.include = ['g-txn']")
    offloaded = run("offload", "--config", file, "--output", "jsonl")
    assert offloaded.exit_code == 0, offloaded.stderr
    assert {json.loads(line)["topic"] for line in offloaded.stdout.splitlines()} == {"g-txn"}
    by_flags = rows("describe", "--archive", url)
    assert {row["topic"] for row in by_flags} == {"g-txn"}
    both_tiers = rows("describe", "g-txn", "--config", file)
    assert both_tiers[0]["log_end_offset"] is not None
    assert run("scrub", "--config", file).exit_code == 0
    assert run("manifest", "show", "--topic", "g-txn", "--config", file).exit_code == 0


def test_a_flag_comes_before_the_environment_and_that_before_the_file(
    run: Run, config: Callable[..., str], tmp_path: Path, broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = config("archive.must.exist = true")
    assert f"{tmp_path}/archive" in run("describe", "--config", file).stderr
    monkeypatch.setenv("TIERING_ARCHIVE_URL", str(tmp_path / "of-environment"))
    assert f"{tmp_path}/of-environment" in run("describe", "--config", file).stderr
    assert f"{tmp_path}/of-environment" in run("describe").stderr
    assert f"{tmp_path}/of-flag" in run("describe", "--config", file, "--archive", tmp_path / "of-flag").stderr
    monkeypatch.setenv("TIERING_CONFIG", file)
    assert run("offload").exit_code == 4


def test_a_topic_that_is_left_alone_is_not_offloaded_though_a_flag_names_it(
    rows: Rows, run: Run, config: Callable[..., str]
) -> None:
    file = config("topics.exclude = ['g-txn']", "[topic.'g-codec-none']", "remote.storage.enable = false")
    topics = {row["topic"] for row in rows("offload", "--config", file, "--dry-run")}
    assert topics
    assert not topics & {"g-txn", "g-codec-none"}
    named = run("offload", "--config", file, "--dry-run", "--topic", "g-txn", "--output", "jsonl")
    assert (named.exit_code, named.stdout) == (0, "")
    assert "the configuration leaves g-txn alone" in named.stderr


def test_retention_goes_by_the_configuration_and_by_flags_before_it(rows: Rows, run: Run, config: Callable[..., str]) -> None:
    file = config("topics.include = ['g-txn', 'g-codec-none']", "topics.exclude = ['g-codec-*']", "retention.ms = 1")
    run("offload", "--config", file)
    assert {row["topic"] for row in rows("expire", "--config", file, "--dry-run")} == {"g-txn"}
    assert [row["action"] for row in rows("expire", "--config", file, "--dry-run")] == ["expire"]
    kept = rows("expire", "--config", file, "--dry-run", "-c", "g-*:retention.ms=-1")
    assert [row["action"] for row in kept] == ["keep"]


def test_retention_of_the_archive_alone_does_not_count_the_log_directory_of_the_configuration(
    rows: Rows, run: Run, config: Callable[..., str]
) -> None:
    file = config("topics.include = ['g-txn']", "retention.bytes = 1")
    run("offload", "--config", file)
    assert rows("expire", "--config", file, "--archive-alone", "--dry-run")


def test_of_several_log_directories_a_command_takes_none_by_chance(run: Run, tmp_path: Path, broker: Path, url: str) -> None:
    file = tmp_path / "t.toml"
    file.write_text(f"log.dirs = ['{broker}', '{broker}-2']\narchive.url = '{url}'")
    for command in ("offload", "describe"):
        refused = run(command, "--config", file)
        assert refused.exit_code == 2
        assert "choose it with --log-dir" in refused.stderr
    assert run("offload", "--config", file, "--log-dir", broker, "--dry-run").exit_code == 0


def test_a_command_with_a_bad_configuration_says_all_that_is_wrong_and_does_nothing(
    run: Run, config: Callable[..., str], url: str
) -> None:
    refused = run("offload", "--config", config("retention.m = 1", "sweep.grace.ms = -1"))
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "did you mean retention.ms?" in refused.stderr
    assert "sweep.grace.ms=-1" in refused.stderr
    assert not Path(url).exists()


def test_encryption_by_configuration_needs_keys_and_takes_them_from_the_environment(
    run: Run, config: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = config("archive.encryption.enable = true")
    assert "it needs keys" in run("offload", "--config", file, "--dry-run").stderr
    monkeypatch.setenv("TIERING_KEYS", "/nowhere/keys.json")
    assert "key file '/nowhere/keys.json' cannot be read" in run("offload", "--config", file, "--dry-run").stderr
