"""`tiering doctor`: a line for each promise, exit codes as everywhere, and a store as it was."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from offloaded import Run
from s3_servers import IgnoresIfNoneMatch, Refuses, serving

from remote.store.retrying import Backoff


def verdicts(text: str) -> dict[str, str]:
    lines = [line.split(maxsplit=2) for line in text.splitlines() if not line.startswith(" ")]
    return {check: verdict for verdict, check, _ in lines}


def keeps_attributes(file: Path) -> bool:
    """Whether the file system can note a checksum beside a file."""
    try:
        os.setxattr(file, "user.probe", b"")
    except OSError:
        return False
    return True


def test_a_folder_passes_and_is_as_it_was(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "theirs").write_bytes(b"another's")
    result = run("doctor", "--archive", folder)
    assert result.exit_code == 0
    found = verdicts(result.stdout)
    assert {check for check, verdict in found.items() if verdict != "ok"} <= {"checksum"}
    assert found["checksum"] == ("ok" if keeps_attributes(folder / "theirs") else "warn")
    assert os.listdir(folder) == ["theirs"]


def test_a_bucket_passes_and_is_as_it_was(run: Run, s3_client: Any, s3_bucket: str) -> None:
    s3_client.put_object(Bucket=s3_bucket, Key="prefix/theirs", Body=b"another's")
    result = run("doctor", "--archive", f"s3://{s3_bucket}/prefix")
    assert result.exit_code == 0
    assert {check for check, verdict in verdicts(result.stdout).items() if verdict != "ok"} == {"bucket"}
    assert "no rule of the bucket aborts incomplete uploads" in result.stdout
    assert [item["Key"] for item in s3_client.list_objects_v2(Bucket=s3_bucket)["Contents"]] == ["prefix/theirs"]


@pytest.mark.strict_s3
def test_a_strict_server_passes(run: Run, strict_bucket: str) -> None:
    result = run("doctor", "--archive", f"s3://{strict_bucket}/prefix")
    assert result.exit_code == 0
    assert "FAIL" not in result.stdout


def test_json_has_the_same_findings(run: Run, tmp_path: Path) -> None:
    lines = run("doctor", "--archive", tmp_path)
    result = run("doctor", "--archive", tmp_path, "--output", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert {f["check"]: f["verdict"] for f in found} == verdicts(lines.stdout)
    assert all(f.keys() == {"check", "verdict", "seen", "remedy"} for f in found)


def test_a_server_that_ignores_the_condition_fails(run: Run, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(IgnoresIfNoneMatch) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        result = run("doctor", "--archive", f"s3://{s3_bucket}/prefix")
    assert result.exit_code == 1
    failed = {check for check, verdict in verdicts(result.stdout).items() if verdict == "FAIL"}
    assert failed == {"condition", "race", "upload"}
    assert "use a store that supports it" in result.stdout


@pytest.mark.parametrize(
    ("method", "check", "right"),
    [("GET", "reach", "the right to list"), ("PUT", "create", "s3:PutObject"), ("DELETE", "delete", "s3:DeleteObject")],
)
def test_without_a_right_the_line_names_it(
    run: Run, s3_client: Any, s3_bucket: str, monkeypatch: pytest.MonkeyPatch, method: str, check: str, right: str
) -> None:
    with serving(partial(Refuses, methods=(method,))) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        result = run("doctor", "--archive", f"s3://{s3_bucket}/prefix")
    assert result.exit_code == 1
    found = verdicts(result.stdout)
    assert [name for name, verdict in found.items() if verdict == "FAIL"] == [check]
    assert list(found)[-1] == check
    assert right in result.stdout
    left = s3_client.list_objects_v2(Bucket=s3_bucket).get("KeyCount")
    assert left == (1 if method == "DELETE" else 0)


def test_a_server_that_does_not_answer_is_to_be_tried_again(run: Run, s3_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr("remote.store.retrying.Backoff", partial(Backoff, attempts_max=2))
    result = run("doctor", "--archive", "s3://bucket/prefix")
    assert result.exit_code == 5
    assert verdicts(result.stdout) == {"reach": "FAIL"}
    assert "correct the address" in result.stdout


def test_a_bucket_that_is_not_there_says_what_to_make(run: Run, s3_server: str) -> None:
    result = run("doctor", "--archive", "s3://no-such-bucket/prefix")
    assert result.exit_code == 1
    assert "create the bucket" in result.stdout


def test_an_address_that_names_no_store_is_a_wrong_usage(run: Run) -> None:
    result = run("doctor", "--archive", "nonesuch://bucket")
    assert result.exit_code == 2
    assert json.loads(run("doctor", "--archive", "nonesuch://bucket", "--output", "json").stdout or "[]") == []
