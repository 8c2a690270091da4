"""Errors as people meet them: one line that names the thing and ends with what to do, and the exit code of the table.

What is wrong with an archive, its keys or its bucket stands in test_bad_input; addresses, in test_usage.
"""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from s3_servers import CredentialsExpired, WebSite, serving

from local_log import errors
from local_log.engine import errors as engine
from remote.store.instrumented import WAITING_S_MIN
from remote.store.open import open_backend
from remote.store.retrying import Backoff
from remote.store.s3.client import once
from tiering.command.exit_codes import Exit, exit_code_of
from tiering.command.silence import FIRST_LOOK_S, NEXT_LOOK_S

Run = Callable[..., Result]


def kinds(base: type[Exception]) -> Iterator[type[Exception]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


CODES: dict[Exit, tuple[type[Exception], ...]] = {
    Exit.usage: (errors.BadAddress,),
    Exit.corruption: (errors.Corrupt, engine.CorruptMessage),
    Exit.not_found: (errors.NotFound,),
    Exit.retry: (errors.Unavailable, errors.Unknown, errors.Conflict),
}
"""The exit code of each kind of error and of those below it; of all others it is 1."""


def test_each_kind_of_error_has_the_exit_code_of_the_table() -> None:
    found = {*kinds(errors.LogError)}
    assert {kind for listed in CODES.values() for kind in listed} < found
    for kind in found:
        (code,) = [code for code, listed in CODES.items() if issubclass(kind, listed)] or [Exit.failure]
        assert exit_code_of(kind.__new__(kind)) is code, kind


def only_line(result: Result, code: Exit) -> str:
    """A busy machine may take so long over the first request that this is told, too: test_silence is about it."""
    assert result.exit_code == code, (result.stderr, result.stdout)
    said = [line for line in result.stderr.splitlines() if " has not answered yet: " not in line]
    assert len(said) == 1, said
    (line,) = said
    assert line.startswith("tiering: ")
    assert "Traceback" not in line
    return line


OF_A_TOPIC: dict[str, tuple[object, ...]] = {
    "describe": ("describe", "{topic}"),
    "fetch": ("fetch", "--topic", "{topic}", "--partition", 0, "--offset", 0),
    "offsets": ("offsets", "--topic", "{topic}"),
    "manifest show": ("manifest", "show", "--topic", "{topic}"),
    "manifest history": ("manifest", "history", "--topic", "{topic}"),
    "manifest diff": ("manifest", "diff", "--topic", "{topic}", 1, 2),
    "manifest export": ("manifest", "export", "--topic", "{topic}", "--to", "{to}"),
    "delete-topic": ("delete-topic", "--topic", "{topic}", "--dry-run"),
    "restore": ("restore", "--topic", "{topic}", "--to", "{to}"),
    "expire": ("expire", "--topic", "{topic}", "-c", "retention.ms=1", "--dry-run"),
    "scrub": ("scrub", "--topic", "{topic}"),
    "sweep": ("sweep", "--topic", "{topic}", "--dry-run"),
    "offload": ("offload", "--topic", "{topic}", "--log-dir", "{logs}"),
}


@pytest.mark.parametrize("command", OF_A_TOPIC)
def test_a_topic_that_nobody_knows_is_named_beside_those_that_there_are(
    run: Run, archive: str, broker: Path, tmp_path: Path, command: str
) -> None:
    words = [str(word).format(topic="g-nowhere", to=tmp_path / "to", logs=broker) for word in OF_A_TOPIC[command]]
    line = only_line(run(*words, "--archive", archive), Exit.not_found)
    assert "g-nowhere" in line
    assert "there are: g-" in line if command != "offload" else "check --log-dir, --topic" in line
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("tier", ["--log-dir", "--archive"])
def test_an_offset_that_no_tier_has_is_told_with_those_that_there_are(run: Run, archive: str, broker: Path, tier: str) -> None:
    place = broker if tier == "--log-dir" else archive
    line = only_line(run("fetch", tier, place, "--topic", "g-txn", "--partition", 0, "--offset", 10**9), Exit.not_found)
    assert "g-txn-0: offset 1000000000 is outside [0, " in line
    assert line.endswith("; ask for one inside")


def test_a_partition_that_is_not_there_is_told_with_those_that_are(run: Run, archive: str) -> None:
    line = only_line(run("fetch", "--archive", archive, "--topic", "g-txn", "--partition", 7, "--offset", 0), Exit.not_found)
    assert line.endswith("topic g-txn has no partition 7; it has 0")


# A disk that gives or takes nothing


def failing(number: int) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> Any:
        raise OSError(number, os.strerror(number), "said-by-the-system")

    return refuse


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "No space left on device; free some space there, then try again"),
        (errno.EDQUOT, "Disk quota exceeded; free some space there, or have the quota raised, then try again"),
        (errno.EIO, "Input/output error; look into the system's log whether the disk fails, and mend it, then try again"),
    ],
    ids=["a full disk", "a quota that is used up", "a disk that fails"],
)
def test_a_restore_onto_a_disk_that_takes_nothing_more_names_the_file_and_goes_on_when_it_does_again(
    run: Run, archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    words = ("restore", "--archive", archive, "--to", tmp_path / "logs", "--topic", "g-txn")
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", failing(number))
        result = run(*words)
    assert result.exit_code == Exit.failure
    assert any(line.startswith(f"tiering: {tmp_path}/logs/") and line.endswith(remedy) for line in result.stderr.splitlines())
    assert "Traceback" not in result.stderr
    assert run(*words).exit_code == Exit.done


def test_an_archive_on_a_full_disk_is_told_and_loses_nothing(
    run: Run, broker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("offload", "--log-dir", broker, "--archive", tmp_path / "archive", "--topic", "g-txn")
    assert run(*words, "--dry-run").exit_code == Exit.done
    with monkeypatch.context() as full:
        full.setattr("remote.store.retrying.Backoff.wait_s", lambda *_: 0.0)
        full.setattr(os, "write", failing(errno.ENOSPC))
        full.setattr(os, "pwrite", failing(errno.ENOSPC))
        result = run(*words)
    assert result.exit_code == Exit.retry, result.stderr
    assert f"{tmp_path}/archive" in result.stderr
    assert "No space left on device" in result.stderr
    assert "free some space" in result.stderr
    assert run(*words).exit_code == Exit.done
    assert run("scrub", "--archive", tmp_path / "archive", "--deep").exit_code == Exit.done


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "Permission denied; give this user the right to it, then try again"),
        (errno.EMFILE, "Too many open files; let a process have more files open (ulimit -n), then try again"),
    ],
)
@pytest.mark.parametrize("command", ["describe", "offload"])
def test_a_log_directory_that_the_system_does_not_give_is_named(
    run: Run, archive: str, broker: Path, monkeypatch: pytest.MonkeyPatch, command: str, number: int, remedy: str
) -> None:
    monkeypatch.setattr("local_log.os_disk.os.listdir", failing(number))
    line = only_line(run(command, "--archive", archive, "--log-dir", broker), Exit.failure)
    assert line == f"tiering: {broker}: {remedy}"


@pytest.mark.parametrize("words", [("describe", "--config"), ("status", "--config"), ("agent", "--config"), ("config", "check")])
def test_a_configuration_that_is_not_there_is_named_once(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    result = run(*words, tmp_path / "nowhere.toml")
    assert result.exit_code == Exit.usage
    assert result.stderr.splitlines()[-1].endswith(f": {tmp_path}/nowhere.toml: no such file or folder; check its name")
    assert result.stderr.count("nowhere.toml") == 1


@pytest.mark.parametrize("words", [("log", "dump", "--batches"), ("offload", "--archive", "{url}", "--log-dir")])
def test_a_folder_that_is_not_there_is_named(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    line = only_line(run(*(word.format(url=tmp_path / "a") for word in words), tmp_path / "nowhere"), Exit.not_found)
    assert line == f"tiering: {tmp_path}/nowhere: no such file or folder; check its name"


def test_an_answer_that_nobody_can_take_is_told(run: Run, archive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("json.dumps", failing(errno.ENOSPC))
    line = only_line(run("describe", "--archive", archive, "--output", "jsonl"), Exit.failure)
    assert line == "tiering: said-by-the-system: No space left on device; free some space there, then try again"


# Credentials


GIVE = "give credentials: AWS_PROFILE, or AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, or a role of this machine's"
EACH = [("describe",), ("offload", "--log-dir", "{logs}"), ("restore", "--to", "{to}"), ("scrub",), ("sweep", "--dry-run")]


@pytest.mark.parametrize("words", EACH, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Unable to locate credentials"),
        ({"AWS_ACCESS_KEY_ID": "A"}, "missing: AWS_SECRET_ACCESS_KEY"),
        ({"AWS_PROFILE": "nobody"}, "The config profile (nobody) could not be found"),
    ],
    ids=["none", "half", "an unknown profile"],
)
def test_credentials_that_are_missing_are_asked_for(
    run: Run, broker: Path, s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], given: dict[str, str], said: str,
) -> None:  # fmt: skip
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    filled = [word.format(logs=broker, to=tmp_path / "to") for word in words]
    line = only_line(run(*filled, "--archive", "s3://bucket/kafka"), Exit.failure)
    assert line.startswith("tiering: s3://bucket/kafka: ")
    assert said in line
    assert line.endswith(GIVE)


@pytest.mark.parametrize("words", EACH, ids=lambda words: words[0])
def test_credentials_that_have_expired_are_to_be_renewed(
    run: Run, broker: Path, s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    filled = [word.format(logs=broker, to=tmp_path / "to") for word in words]
    with serving(CredentialsExpired) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        line = only_line(run(*filled, "--archive", "s3://bucket/kafka"), Exit.failure)
    assert line.startswith("tiering: s3://bucket/kafka: ")
    assert line.endswith("; renew the credentials: log in again, or give such as a role renews by itself")
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("words", EACH, ids=lambda words: words[0])
def test_what_answers_and_is_no_s3_server_is_told_to_be_none(
    run: Run, broker: Path, s3_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    filled = [word.format(logs=broker, to=tmp_path / "to") for word in words]
    with serving(WebSite) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        line = only_line(run(*filled, "--archive", "s3://bucket/kafka"), Exit.failure)
    assert line.startswith("tiering: s3://bucket/kafka: ")
    assert line.endswith("what answers is no S3 server; check AWS_ENDPOINT_URL")


def test_status_of_an_archive_that_no_s3_server_has_says_so(
    run: Run, broker: Path, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remote.store.retrying.Backoff.wait_s", lambda *_: 0.0)
    with serving(WebSite) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        told = run("status", "--override", f"log.dirs={broker}", "--override", "archive.url=s3://bucket/kafka")
    assert told.exit_code == Exit.partly
    (line,) = [line for line in told.stdout.splitlines() if line.startswith("store ")]
    assert "does not respond since 20" in line
    assert "what answers is no S3 server; check AWS_ENDPOINT_URL" in line


def test_a_wrong_address_is_given_up_within_seconds() -> None:
    assert once.connect_timeout <= 5
    assert once.retries == {"mode": "standard", "total_max_attempts": 1}, (
        "only `Retrying` repeats, and knows whether it is in vain"
    )
    assert Backoff().unreached_s <= 3
    assert FIRST_LOOK_S + NEXT_LOOK_S + WAITING_S_MIN <= 3, "what hangs is told of by then"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://nobody.invalid"], ids=["nobody listens", "no such host"])
def test_an_address_where_nobody_is_is_told_to_be_that(s3_server: str, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    with pytest.raises(errors.Unreachable, match=f"{address}/bucket/key.*; check AWS_ENDPOINT_URL and the network"):
        open_backend("s3://bucket").get("key")


def test_a_server_that_is_not_there_is_told_with_how_often_it_was_tried(
    run: Run, s3_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("remote.store.retrying.Backoff.wait_s", lambda *_: 0.0)
    line = only_line(run("describe", "--archive", "s3://bucket/kafka"), Exit.retry)
    assert "http://127.0.0.1:9" in line
    assert "check AWS_ENDPOINT_URL and the network; tried 7 times" in line
