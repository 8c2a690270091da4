"""Options, addresses and stores that the commands refuse before anything is written."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from offloaded import Rows, Run
from s3_servers import IgnoresIfNoneMatch, serving


def test_topics_that_match_nothing_are_not_found_and_nothing_is_written(run: Run, broker: Path, url: str) -> None:
    for extra in ([], ["--dry-run"]):
        missing = run("offload", "--log-dir", broker, "--archive", url, "--topic", "g-nowhere*", *extra)
        assert (missing.exit_code, missing.stdout) == (4, "")
        assert "g-nowhere*" in missing.stderr
        assert not Path(url).exists()


def test_a_log_directory_that_is_not_there_is_not_found_and_nothing_is_written(run: Run, tmp_path: Path, url: str) -> None:
    missing = run("offload", "--log-dir", tmp_path / "nowhere", "--archive", url)
    assert missing.exit_code == 4
    assert str(tmp_path / "nowhere") in missing.stderr
    assert not Path(url).exists()


@pytest.mark.parametrize("extra", [["--topics", "a"], ["--dryrun"], ["--output", "yaml"], ["more"]])
def test_an_option_that_does_not_exist_is_a_usage_error_and_nothing_is_written(
    run: Run, broker: Path, url: str, extra: list[str]
) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", url, *extra)
    assert refused.exit_code == 2
    assert extra[-1] in refused.stderr or extra[0] in refused.stderr
    assert not Path(url).exists()


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("s3://", "s3://bucket/prefix"),
        ("gopher://hole/prefix", "s3://"),
        ("s3://bucket/a//b", "relative names"),
        ("file://host/folder", "file:///"),
        ("s3://user:secret@bucket/prefix", "environment"),
    ],
)
def test_an_address_that_names_no_store_is_refused_with_what_would_do(run: Run, broker: Path, address: str, remedy: str) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", address)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert remedy in refused.stderr
    assert "secret" not in refused.stderr


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("option", ["--archive", "--log-dir"])
@pytest.mark.parametrize("command", ["offload", "describe", "offsets", "fetch"])
def test_an_option_that_names_nothing_is_a_usage_error_that_names_the_option(
    run: Run, archive: str, broker: Path, command: str, option: str, empty: str
) -> None:
    more = {"offsets": ["--topic", "a"], "fetch": ["--topic", "a", "--partition", 0, "--offset", 0]}.get(command, [])
    refused = run(command, "--archive", archive, "--log-dir", broker, *more, option, empty)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert option in refused.stderr


@pytest.mark.parametrize("command", ["offsets", "fetch"])
def test_a_topic_without_a_name_is_a_usage_error(run: Run, broker: Path, command: str) -> None:
    more = ["--partition", 0, "--offset", 0] if command == "fetch" else []
    refused = run(command, "--log-dir", broker, "--topic", "", *more)
    assert refused.exit_code == 2
    assert "--topic" in refused.stderr


@pytest.mark.parametrize("address", ["memory://", "memory://archive", "MEMORY://archive", "simplecache::memory://archive"])
@pytest.mark.parametrize("command", ["offload", "describe"])
def test_an_archive_that_ends_with_the_process_is_a_usage_error(run: Run, broker: Path, command: str, address: str) -> None:
    refused = run(command, "--log-dir", broker, "--archive", address)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--archive" in refused.stderr
    assert "s3://bucket/prefix" in refused.stderr


@pytest.mark.parametrize("extra", [[], ["--dry-run"]], ids=["offload", "dry run"])
@pytest.mark.parametrize(
    "place",
    ["{logs}", "{logs}/", "{logs}/archive", "{logs}/g-txn-0", "{logs}/..", "file://{logs}/archive", "/", "{link}", "{link}/a/b"],
)
def test_an_archive_that_shares_a_folder_with_the_log_directory_is_a_usage_error_and_nothing_is_written(
    run: Run, fingerprint: Callable[[Path], Any], logs: Path, tmp_path: Path, place: str, extra: list[str]
) -> None:
    (tmp_path / "link").symlink_to(logs)
    before = fingerprint(tmp_path)
    refused = run("offload", "--log-dir", logs, "--archive", place.format(logs=logs, link=tmp_path / "link"), *extra)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--archive" in refused.stderr
    assert fingerprint(tmp_path) == before


def test_a_log_directory_behind_a_link_into_the_archive_is_a_usage_error(run: Run, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(logs)
    assert run("offload", "--log-dir", tmp_path / "link", "--archive", logs / "archive").exit_code == 2


def test_an_archive_beside_the_log_directory_may_have_the_same_beginning(rows: Rows, logs: Path) -> None:
    assert rows("offload", "--log-dir", logs, "--archive", f"{logs}-archive")


def test_a_bucket_that_is_not_there_is_refused_with_its_name(run: Run, broker: Path, s3_server: str) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", "s3://no-such-bucket/prefix")
    assert refused.exit_code == 1
    assert "no-such-bucket" in refused.stderr


# A store that does not keep its word


@pytest.fixture
def careless_server(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has boto3 talk to a server in front of the same buckets that ignores If-None-Match."""
    with serving(IgnoresIfNoneMatch) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield


@pytest.mark.usefixtures("careless_server")
def test_a_store_that_ignores_the_condition_is_refused_before_anything_is_there(
    run: Run, broker: Path, s3_bucket: str, s3_client: Any
) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", f"s3://{s3_bucket}/prefix")
    assert refused.exit_code == 1
    assert "If-None-Match" in refused.stderr
    assert f"s3://{s3_bucket}/prefix" in refused.stderr
    assert "Contents" not in s3_client.list_objects_v2(Bucket=s3_bucket)
