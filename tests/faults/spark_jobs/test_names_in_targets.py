"""Names that a target's own files state, which whoever may write there could have changed: none leads out of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_log.errors import Corrupt
from spark_jobs.backfill.run import publish_all
from spark_jobs.common import commit_log, staging
from spark_jobs.common.commit_log import Commit, File, Part, Settings
from spark_jobs.common.staging import Done, mark_of, stem_of
from spark_jobs.common.target import HIDDEN, STAGING, Target
from spark_jobs.reprocess import stage as reprocess_stage
from spark_jobs.reprocess.stage import Committed, Run

PART = Part("orders", "a" * 22, 3)
STEM = stem_of("0123456789abcdef", PART, (0, 9))
NAME = "topic=orders/date=2026-01-01/3-0-9.parquet"
STAGED = f"{STEM}.attempt-0"
RUN = Run("file:///target", "0123456789abcdef", "b" * 32, "zstd")
ELSEWHERE = (
    "../home/authorized_keys",
    "/etc/passwd",
    "topic=orders/../../home.parquet",
    "topic=orders//x.parquet",
    "topic=orders/./x.parquet",
    "topic=orders/",
    "",
    "s3://bucket/topic=orders/x.parquet",
    "topic=orders\\..\\x.parquet",
    "topic=orders/\0.parquet",
    "topic=orders/a\n.parquet",
    f"{HIDDEN}commits/x.parquet",
    "run=other/part-00000.parquet",
    5,
    None,
    [],
)


def commit(name: Any, staged: Any) -> tuple[bytes, Callable[[bytes], Any]]:
    """A commit of a backfill with one file, and what reads it."""
    made = Commit(1, "evil", 0, Settings(("offset",), "day", False), {}, (File(name, staged, 0, 0),))
    return commit_log.encode(made), lambda body: commit_log.decode(body, "key")


def mark(name: Any, staged: Any) -> tuple[bytes, Callable[[bytes], Any]]:
    """The mark of a staged split."""
    made = Done("attempt", PART, 0, 9, (File(name, staged, 0, 0),), 0, 0)
    return staging.encode(made), lambda body: staging.decode(body, mark_of(STEM))


def reprocessed(name: Any, staged: Any) -> tuple[bytes, Callable[[bytes], Any]]:
    """The commit of a reprocessing."""
    made = Committed(RUN.run_id, RUN.writer, (File(name, staged, 0, 0),))
    return reprocess_stage.encode(made), lambda body: reprocess_stage.decode(body, RUN.commit_key)


SOUND = {
    commit: (NAME, STAGED),
    mark: (NAME, STAGED),
    reprocessed: (f"run={RUN.run_id}/part-00000.parquet", f"{RUN.staging}/part-00000.{'c' * 32}.parquet"),
}


@pytest.mark.parametrize("make", SOUND, ids=lambda make: make.__name__)
def test_a_name_that_leads_elsewhere_is_corrupt(make: Callable[[Any, Any], tuple[bytes, Callable[[bytes], Any]]]) -> None:
    name, staged = SOUND[make]
    body, read = make(name, staged)
    assert read(body).files == (File(name, staged, 0, 0),)
    for wrong in (*ELSEWHERE, staged):
        body, read = make(wrong, staged)
        with pytest.raises(Corrupt):
            read(body)
    for wrong in (*ELSEWHERE, name):
        body, read = make(name, wrong)
        with pytest.raises(Corrupt):
            read(body)


@pytest.mark.parametrize("make", SOUND, ids=lambda make: make.__name__)
@pytest.mark.parametrize("field", ["rows", "bytes"])
def test_numbers_of_files_are_of_64_bits(make: Callable[[Any, Any], tuple[bytes, Callable[[bytes], Any]]], field: str) -> None:
    body, read = make(*SOUND[make])
    for number in (-1, 2**63, 10**400, 1.5, True, "5"):
        value = json.loads(body)
        value["files"][0][field] = number
        with pytest.raises(Corrupt):
            read(json.dumps(value).encode())


@pytest.mark.parametrize("number", [-1, 2**63, 10**400])
def test_numbers_of_a_commit_are_of_64_bits(number: int) -> None:
    body, read = commit(NAME, STAGED)
    covered = {"topic": "orders", "topic_id": "a" * 22, "partition": 3, "ranges": [[0, number]]}
    for change in ({"version": number}, {"committed_at_ms": number}, {"covered": [covered]}):
        with pytest.raises(Corrupt):
            read(json.dumps(json.loads(body) | change).encode())


def test_a_mark_of_another_split_than_its_key_says_is_corrupt() -> None:
    body, _ = mark(NAME, STAGED)
    with pytest.raises(Corrupt, match="delete it"):
        staging.decode(body, mark_of(stem_of("0123456789abcdef", PART, (0, 10))))


def test_publishing_leaves_what_lies_outside_of_a_target_alone(tmp_path: Path) -> None:
    ours = tmp_path / "home" / "authorized_keys"
    ours.parent.mkdir()
    ours.write_text("mine")
    target = Target(str(tmp_path / "out"))
    target.store.put_if_absent(f"{STAGING}evil.key", b"theirs")
    body, _ = commit("../home/authorized_keys", f"{STAGING}evil.key")
    head = commit_log.nothing(Settings((), "date", False))
    target.store.put_if_absent(f"{commit_log.COMMITS}{commit_log.following(head, 'r', 0, [], []).name}", body)
    with pytest.raises(Corrupt):
        publish_all(target, target.store, commit_log.following(head, "r", 0, [], []))
    with pytest.raises(ValueError, match="authorized_keys"):
        target.publish(f"{STAGING}evil.key", "../home/authorized_keys")
    assert ours.read_text() == "mine"
