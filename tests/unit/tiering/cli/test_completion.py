"""`tiering completion`: what shells run, asked as they ask."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tiering.cli import main
from tiering.command.topic_names import FRESH_MS, KEPT_MS_MAX

Run = Callable[..., Result]

SCRIPT = f"""\
#!{sys.executable}
import sys
{{before}}
from tiering.cli import main
try:
    main()
finally:
    print("modules:", *sys.modules, file=sys.stderr)
"""
COMPLETE = """\
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_tiering_completion tiering 2>"$ERRORS"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """PATH with a `tiering` in it as an installed wheel has it."""
    program = tmp_path / "bin" / "tiering"
    program.parent.mkdir()
    program.write_text(SCRIPT.format(before=f"sys.path[:0] = {sys.path!r}"))
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


@pytest.fixture
def complete(path: str, run: Run, tmp_path: Path) -> Callable[..., list[str]]:
    """What bash offers for the last of some words, by the function of our script."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    (tmp_path / "script").write_text(run("completion", "bash").stdout)
    (tmp_path / "complete").write_text(COMPLETE)

    def completed(*words: str) -> list[str]:
        asked = [bash, tmp_path / "complete", tmp_path / "script", *words]
        told = subprocess.run(
            asked, env={**os.environ, "PATH": path, "ERRORS": str(tmp_path / "errors")}, capture_output=True, text=True
        )
        assert told.returncode == 0, told.stderr
        return told.stdout.split()

    return completed


@pytest.mark.slow
def test_bash_completes_commands_their_commands_options_and_choices(complete: Callable[..., list[str]]) -> None:
    assert complete("tiering", "o") == ["offload", "offsets"]
    assert complete("tiering", "manifest", "") == ["acknowledge", "diff", "export", "history", "show"]
    assert complete("tiering", "offload", "--arch") == ["--archive"]
    assert complete("tiering", "describe", "--output", "j") == ["json", "jsonl"]
    assert complete("tiering", "completion", "z") == ["zsh"]
    assert complete("tiering", "nowhere") == []


@pytest.mark.slow
def test_bash_is_left_to_complete_folders_and_files(complete: Callable[..., list[str]], tmp_path: Path) -> None:
    # Its own answer to a question for folders needs a terminal: it says so, and nothing of ours is offered instead.
    for words in (("offload", "--log-dir", "/"), ("config", "check", "/")):
        assert complete("tiering", *words) == []
        assert "compopt" in (tmp_path / "errors").read_text(), words


def completed_apart(path: str, words: str) -> tuple[list[str], set[str]]:
    """What is offered for the last of some words by a process of its own, and the modules that it has imported."""
    asked = {"_TIERING_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    told = subprocess.run(["tiering"], env={**os.environ, **asked, "PATH": path}, capture_output=True, text=True)
    return told.stdout.split(), set(told.stderr.partition("modules:")[2].split())


HEAVY = {"boto3", "botocore", "fsspec", "numba", "numpy", "pyarrow", "tiering.config.settings"}


def test_commands_are_completed_before_anything_heavy_is_imported(path: str) -> None:
    offers, imported = completed_apart(path, "tiering r")
    assert offers == ["plain,restore", "plain,rotate-keys"]
    assert "tiering.cli" in imported
    assert not imported & (HEAVY | {"tiering.cli.restore"})


def test_topics_of_both_tiers_are_completed_before_anything_heavy_is_imported(
    path: str, broker: Path, archive: str, tmp_path: Path
) -> None:
    file = tmp_path / "tiering.toml"
    file.write_text(f'log.dirs = ["{broker}"]\narchive.url = "{archive}"\n')
    offers, imported = completed_apart(path, f"tiering fetch --config {file} --topic g-ti")
    assert offers == ["plain,g-tiny"]
    assert not imported & HEAVY


def test_zsh_and_fish_are_told_what_each_command_is_for(path: str) -> None:
    env = {**os.environ, "PATH": path, "COMP_WORDS": "tiering off"}
    zsh = {**env, "_TIERING_COMPLETE": "zsh_complete", "COMP_CWORD": "1"}
    fish = {**env, "_TIERING_COMPLETE": "fish_complete", "COMP_CWORD": "off"}
    for asked in (zsh, fish):
        told = subprocess.run(["tiering"], env=asked, capture_output=True, text=True)
        assert "offload" in told.stdout
        assert "Copy inactive segments" in told.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_that_its_shell_can_read(run: Run, tmp_path: Path, shell: str) -> None:
    printed = run("completion", shell)
    assert printed.exit_code == 0
    assert "_TIERING_COMPLETE" in printed.stdout
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / "script").write_text(printed.stdout)
    subprocess.run([found, "-n", tmp_path / "script"], check=True)


def test_a_shell_that_is_not_known_is_a_usage_error_that_names_those_that_are(run: Run) -> None:
    refused = run("completion", "tcsh")
    assert refused.exit_code == 2
    assert all(shell in refused.stderr for shell in ("bash", "zsh", "fish"))


def offered(*words: str, **environment: str) -> list[str]:
    """What is offered for the last of some words, asked in process as click's scripts ask."""
    asked = {"_TIERING_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    told = CliRunner().invoke(main, [], prog_name="tiering", env={**asked, **environment}, catch_exceptions=False)
    return [line.partition(",")[2] for line in told.stdout.splitlines() if line]


def test_topics_are_those_of_the_tiers_that_are_named_or_configured(broker: Path, archive: str, tmp_path: Path) -> None:
    file = tmp_path / "tiering.toml"
    file.write_text(f'log.dirs = ["{broker}"]\narchive.url = "{archive}"\n')
    assert offered("tiering", "fetch", "--log-dir", str(broker), "--topic", "g-t") == ["g-tiny", "g-trimmed", "g-txn"]
    assert offered("tiering", "fetch", "--archive", archive, "--topic", "g-tr") == ["g-trimmed"]
    assert offered("tiering", "fetch", "--config", str(file), "--topic", "g-ti") == ["g-tiny"]
    assert offered("tiering", "describe", "g-ti", TIERING_CONFIG=str(file)) == ["g-tiny"]
    assert offered("tiering", "scrub", "--archive", archive[:5], TIERING_CONFIG=str(file)) == [archive]
    assert offered("tiering", "describe", "g-ti", TIERING_LOG_DIRS=str(broker)) == ["g-tiny"]
    assert offered("tiering", "describe", "g-tr", TIERING_ARCHIVE_URL=archive, TIERING_CONFIG=str(file)) == ["g-trimmed"]


@pytest.mark.slow
def test_topics_of_a_store_are_kept_and_asked_for_again_behind_the_shells_back(
    s3_client: Any, s3_bucket: str, tmp_path: Path
) -> None:
    def offers(**environment: str) -> list[str]:
        words = ("tiering", "fetch", "--archive", f"s3://{s3_bucket}/kafka", "--topic", "o")
        return offered(*words, XDG_CACHE_HOME=str(tmp_path), **environment)

    def kept(since_s: float = 0) -> Path:
        """The file of names once it was written after this time. To ask for offers meanwhile starts a process each time."""
        ends_s = time.monotonic() + 120
        while time.monotonic() < ends_s:
            if found := [file for file in tmp_path.rglob("*.json") if file.stat().st_mtime > since_s]:
                return found[0]
            time.sleep(0.05)
        raise AssertionError("no names were kept")

    s3_client.put_object(Bucket=s3_bucket, Key="kafka/orders/one")
    offers()
    file = kept()
    assert offers() == ["orders"]
    s3_client.put_object(Bucket=s3_bucket, Key="kafka/other/one")
    assert offers() == ["orders"]
    aged_s = age(file, FRESH_MS + 1)
    assert offers() == ["orders"]
    assert kept(aged_s) == file
    assert offers() == ["orders", "other"]
    aged_s = age(file, KEPT_MS_MAX + 1)
    assert offers() in ([], ["orders", "other"])
    assert kept(aged_s) == file, "what is so old is asked for before it is offered"
    assert offers() == ["orders", "other"]
    assert offers(AWS_ENDPOINT_URL="http://127.0.0.1:9") == [], "an address names another bucket there"


def age(file: Path, ms: int) -> float:
    """Makes a file that was just written so old, and gives the time of its modification in seconds."""
    modified_s = file.stat().st_mtime - ms / 1000
    os.utime(file, (modified_s, modified_s))
    return modified_s


def test_times_and_the_ends_of_a_log_are_offered() -> None:
    assert offered("tiering", "fetch", "--from-time", "n") == ["now"]
    assert offered("tiering", "fetch", "--offset", "e") == ["earliest"]
    assert offered("tiering", "offsets", "--time", "n") == ["now"]


def test_a_time_before_now_is_offered_though_it_begins_as_an_option_does() -> None:
    assert offered("tiering", "fetch", "--from-time", "-") == ["-1h", "-24h", "-7d"]
    assert offered("tiering", "offsets", "--time", "-7") == ["-7d"]
    assert offered("tiering", "fetch", "--from-time", "--f") == ["--from-time", "--follow", "--format"]
    assert "--from-time" in offered("tiering", "fetch", "-")
    for shell, typed in (("zsh", "3"), ("fish", "-2")):
        asked = {"_TIERING_COMPLETE": f"{shell}_complete", "COMP_WORDS": "tiering fetch --from-time -2", "COMP_CWORD": typed}
        told = CliRunner().invoke(main, [], prog_name="tiering", env=asked, catch_exceptions=False)
        assert "-24h" in told.stdout


def test_an_address_that_bash_divides_at_its_colon_is_completed_behind_it(tmp_path: Path) -> None:
    file = tmp_path / "tiering.toml"
    file.write_text('archive.url = "s3://bucket/kafka"\n')
    for words in (["s3", ":", "//b"], ["s3", ":", "//"]):
        assert offered("tiering", "fetch", "--config", str(file), "--archive", *words) == ["//bucket/kafka"]
    assert offered("tiering", "fetch", "--config", str(file), "--archive", "s3", ":") == ["//bucket/kafka"]
    assert offered("tiering", "fetch", "--config", str(file), "--archive", "s3") == ["s3://bucket/kafka"]


def test_whatever_is_wrong_a_shell_gets_no_message(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("no such thing = [")
    for words in (("--config", str(bad)), ("--log-dir", "/nowhere"), ("--archive", "s3://bucket/prefix"), ("--archive", "x://")):
        nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "XDG_CACHE_HOME": str(tmp_path)}
        assert offered("tiering", "fetch", *words, "--topic", "g", **nowhere) == []
