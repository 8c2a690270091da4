"""Each role runs its commands on a bucket as Terraform makes it, with all rights that it needs and none that it never uses."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import pytest
from acting_as import Role, acting_as
from archive_fakes import Crash, Door
from click.testing import CliRunner, Result
from golden_logs import broker_logs
from iam import grants
from logs_to_archive import roll
from made_manifests import entry
from modules import DATA_KEY, rendered

from local_log.errors import Corrupt, Invalid
from remote.clock import RandomIds, SystemClock
from remote.direct_write.commit import PartitionEntries, Write, commit_write
from remote.direct_write.topic import WrittenPartition, written_topic
from remote.keys import PartitionPath, own_write_id
from remote.manifest import pins
from remote.manifest.stamped_json import MAJOR, MINOR, stamped
from remote.store.api import ObjectStore
from remote.store.open import open_store
from tiering.cli import main

T = TypeVar("T")
PREFIXES = ["", "kafka/production"]
BELOW_A_PREFIX = pytest.mark.parametrize("bucket", PREFIXES[1:], indirect=True)
"""Where the rights are asked for at the root of a bucket by another test of the same policies."""
TOPICS = ("g-codec-none", "g-txn")
RETAIN = ("-c", "retention.ms=1", "-c", "file.delete.delay.ms=0", "--yes")


def tiering(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def done(*args: object) -> list[dict[str, Any]]:
    result = tiering(*args, "--output", "jsonl")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = broker_logs(tmp_path_factory.mktemp("logs"), *(f"{topic}-0" for topic in TOPICS))
    for topic in TOPICS:
        roll(folder, f"{topic}-0")
    return folder


class Bucket:
    """A bucket with an archive below a prefix, and who may do what there."""

    def __init__(self, name: str, prefix: str) -> None:
        self.name, self.prefix = name, prefix
        self.url = f"s3://{name}/{prefix}"

    def role(self, *policies: str) -> Role:
        """A role with these of iam's policies, on a bucket with its own."""
        own = (rendered("iam", policy, self.name, self.prefix) for policy in policies)
        return Role((*own, rendered("bucket", "bucket", self.name, self.prefix)))

    def archiver(self, *more: str) -> Role:
        return self.role("archiver", "archiver_keeps", *more)

    def objects(self) -> dict[str, bytes]:
        store = open_store(self.url)
        return {meta.key: store.get(meta.key) for meta in store.list("")}

    def path(self, topic: str) -> PartitionPath:
        topic_id = next(open_store(self.url).list_folders(f"{topic}/"))
        return PartitionPath(topic, topic_id, 0)


@pytest.fixture(params=PREFIXES)
def bucket(request: pytest.FixtureRequest, s3_bucket: str) -> Bucket:
    return Bucket(s3_bucket, request.param)


@pytest.fixture
def archived(bucket: Bucket, logs: Path) -> Bucket:
    done("offload", "--log-dir", logs, "--archive", bucket.url)
    return bucket


def assert_uses_all(role: Role, *policies: str, of: Bucket) -> None:
    given = grants(rendered("iam", policy, of.name, of.prefix) for policy in policies)
    assert given - role.used_grants == set()


def abort_a_copy(bucket: Bucket) -> None:
    """As an uploader does whose file was changed under it."""
    part = bytes(5 << 20)
    key = bucket.path("g-txn").segment(f"{0:020d}-0-{0:032x}.log")
    with pytest.raises(Corrupt):
        open_store(bucket.url).upload(key, [part, b"end"], size=len(part) + 3, crc32c=0)


class Dies(Door):
    """A writer's store that kills it when it decides on its write, before or after that is done; None for never."""

    def __init__(self, inner: ObjectStore, after: bool | None) -> None:
        super().__init__(inner)
        self.after = after

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if self.after is None or verb != "put_if_absent" or "/writes/" not in key:
            return call()
        if self.after:
            call()
        raise Crash


def write_rows(bucket: Bucket, topic: str, *, dies_after_deciding: bool | None = None, write_id: str = "a-users") -> None:
    """What Spark's writer commits."""
    store = Dies(open_store(bucket.url), dies_after_deciding)
    asked = Write(write_id, (written_topic(store, topic, 1),), "tests")

    def place(now: Mapping[PartitionPath, WrittenPartition]) -> PartitionEntries:
        return {path: (entry(p.end_offset, p.end_offset + 5),) for path, p in now.items()}

    with suppress(Crash):
        commit_write(store, SystemClock(), RandomIds(), asked, place, threads=1)


def test_the_archiver_archives_with_every_right_it_has_and_deletes_nothing(bucket: Bucket, logs: Path) -> None:
    with acting_as(bucket.archiver()) as role:
        assert {row["action"] for row in done("offload", "--log-dir", logs, "--archive", bucket.url)} >= {"copied"}
        done("offload", "--log-dir", logs, "--archive", bucket.url)
        assert tiering("doctor", "--archive", bucket.url).exit_code == 0
        abort_a_copy(bucket)
        write_rows(bucket, "rows")
        assert role.refused == []
        assert_uses_all(role, "archiver", of=bucket)
        before = bucket.objects()
        for verb in (("expire", *RETAIN), ("expire", *RETAIN), ("sweep", "--grace-ms", 0, "--yes")):
            tiering(*verb, "--archive", bucket.url)
        assert {request.action for request in role.refused} <= {"s3:DeleteObject", "s3:GetObject"}
        assert "s3:DeleteObject" in {request.action for request in role.refused}
        left = bucket.objects()
        assert {key: left[key] for key in before} == before


def test_the_sweeper_retains_and_sweeps_with_every_right_it_has_and_archives_nothing(archived: Bucket, s3_client: Any) -> None:
    write_rows(archived, "undecided", dies_after_deciding=False)
    write_rows(archived, "decided", dies_after_deciding=True)
    write_rows(archived, "written", write_id=own_write_id(RandomIds().new_id()))
    orphans = [archived.path(topic).segment(f"{7:020d}-0-{7:032x}.log") for topic in ("g-txn", "undecided", "decided")]
    for key in orphans:
        open_store(archived.url).put_if_absent(key, b"what a copy left behind")
    over = pins.Pin("e" * 32, "gone", 1, 0, 9, 10 * 3_600_000, 0)  # so that it is over as soon as the store has it
    body = stamped({**asdict(over), "format": {"major": MAJOR, "minor": MINOR}})
    open_store(archived.url).put_if_absent(archived.path("g-txn").pin(over.id), body)
    s3_client.create_multipart_upload(Bucket=archived.name, Key=f"{archived.prefix}/{orphans[0]}".lstrip("/"))
    with acting_as(archived.role("sweeper")) as role:
        assert {row["action"] for row in done("expire", "--archive", archived.url, "--topic", "g-txn", *RETAIN)} == {"expire"}
        assert {row["action"] for row in done("expire", "--archive", archived.url, "--topic", "g-txn", *RETAIN)} == {"delete"}
        time.sleep(1.1)  # S3 tells times in whole seconds, and only what is older than now goes
        swept = {row["what"] for row in done("sweep", "--archive", archived.url, "--grace-ms", 0, "--yes")}
        assert swept >= {"segment", "manifest", "pin", "write", "upload"}
        done("delete-topic", "--archive", archived.url, "--topic", "g-codec-none", "--delay-ms", 0, "--yes")
        assert tiering("doctor", "--archive", archived.url).exit_code == 0
        assert role.refused == []
        assert_uses_all(role, "sweeper", of=archived)


@BELOW_A_PREFIX
def test_the_sweeper_archives_nothing(archived: Bucket, logs: Path, tmp_path: Path) -> None:
    more = broker_logs(tmp_path, "g-tiny-0")
    roll(more, "g-tiny-0")
    with acting_as(archived.role("sweeper")) as role:
        assert tiering("offload", "--log-dir", more, "--archive", archived.url).exit_code != 0
    assert {request.action for request in role.refused} == {"s3:PutObject"}
    assert not [key for key in archived.objects() if key.startswith("g-tiny/")]


def test_the_reader_reads_restores_and_scrubs_with_every_right_it_has(archived: Bucket, tmp_path: Path) -> None:
    with acting_as(archived.role("reader")) as role:
        assert done("describe", "--archive", archived.url)
        assert done("fetch", "--archive", archived.url, "--topic", "g-txn", "--partition", 0, "--offset", 0, "--max-records", 3)
        assert done("offsets", "--archive", archived.url, "--topic", "g-txn", "--time", -2)
        assert done("manifest", "history", "--archive", archived.url, "--topic", "g-txn", "--partition", 0)
        assert done("restore", "--archive", archived.url, "--to", tmp_path / "to")
        assert tiering("scrub", "--deep", "--archive", archived.url).exit_code == 0
        assert role.refused == []
        assert_uses_all(role, "reader", of=archived)


@BELOW_A_PREFIX
def test_the_reader_changes_nothing(archived: Bucket, logs: Path) -> None:
    before = archived.objects()
    with acting_as(archived.role("reader")) as role:
        for verb in (
            ("offload", "--log-dir", logs),
            ("expire", *RETAIN),
            ("sweep", "--grace-ms", 0, "--yes"),
            ("delete-topic", "--topic", "g-txn", "--yes"),
            ("doctor",),
        ):
            result = tiering(*verb, "--archive", archived.url)
            assert verb[0] == "offload" or result.exit_code != 0
        path = archived.path("g-txn")
        with pytest.raises(Invalid, match="AccessDenied"):
            pins.create(open_store(archived.url), path, "reader", 1, 0, 9, 1000, SystemClock(), RandomIds())
    assert {request.action for request in role.refused} >= {"s3:PutObject"}
    assert archived.objects() == before


def test_a_reader_that_may_pin_makes_renews_and_releases_pins_and_nothing_else(archived: Bucket) -> None:
    store, path, clock, ids = open_store(archived.url), archived.path("g-txn"), SystemClock(), RandomIds()
    before = archived.objects()
    with acting_as(archived.role("reader", "pins")) as role:
        store = open_store(archived.url)
        pin = pins.create(store, path, "reader", 1, 0, 9, 60_000, clock, ids)
        pin = pins.renew(store, path, pin, 60_000, clock, ids)
        assert pins.pins_of(store, path, clock.now_ms()).live == (pin,)
        pins.release(store, path, pin)
        assert role.refused == []
        assert_uses_all(role, "pins", of=archived)
        for key in before:
            with pytest.raises(Invalid, match="AccessDenied"):
                store.delete(key)
    assert archived.objects() == before


@BELOW_A_PREFIX
def test_a_role_of_ones_own_with_both_policies_does_what_the_archiver_and_the_sweeper_do(bucket: Bucket, logs: Path) -> None:
    with acting_as(bucket.role("archiver", "sweeper")) as role:
        done("offload", "--log-dir", logs, "--archive", bucket.url)
        done("expire", "--archive", bucket.url, *RETAIN)
        assert {row["action"] for row in done("expire", "--archive", bucket.url, *RETAIN)} == {"delete"}
        done("sweep", "--archive", bucket.url, "--grace-ms", 0, "--yes")
    assert role.refused == []


@pytest.fixture
def key_address(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A key in moto's KMS, by its alias."""
    import boto3.session

    client = boto3.session.Session().client("kms")
    key_id = client.create_key()["KeyMetadata"]["KeyId"]
    client.create_alias(AliasName="alias/segments", TargetKeyId=key_id)
    yield "aws-kms://alias/segments"
    client.delete_alias(AliasName="alias/segments")
    client.close()


@BELOW_A_PREFIX
def test_data_keys_are_wrapped_by_the_archiver_and_unwrapped_by_readers(bucket: Bucket, logs: Path, key_address: str) -> None:
    with acting_as(bucket.archiver("wrap", "unwrap")) as archiver:
        done("offload", "--log-dir", logs, "--archive", bucket.url, "--encrypt", "--keys", key_address)
        done("rotate-keys", "--archive", bucket.url, "--keys", key_address)
    assert archiver.refused == []
    assert_uses_all(archiver, "wrap", of=bucket)
    fetch = ("fetch", "--archive", bucket.url, "--topic", "g-txn", "--partition", 0, "--offset", 0, "--keys", key_address)
    with acting_as(bucket.role("reader", "unwrap")) as reader:
        assert done(*fetch)
    assert reader.refused == []
    assert_uses_all(reader, "unwrap", of=bucket)
    with acting_as(bucket.role("reader")) as stranger:
        assert tiering(*fetch).exit_code != 0
    assert {(r.action, r.resource) for r in stranger.refused} == {("kms:Decrypt", DATA_KEY)}


def only_with_a_prefix(document: dict[str, Any]) -> None:
    document["Statement"][0]["Condition"] = {"StringLike": {"s3:prefix": "*"}}


@BELOW_A_PREFIX
def test_listing_under_a_condition_on_the_prefix_would_keep_an_archive_from_being_made(bucket: Bucket, logs: Path) -> None:
    role = bucket.archiver()
    only_with_a_prefix(role.documents[0])
    with acting_as(role):
        result = tiering("offload", "--log-dir", logs, "--archive", bucket.url)
    assert result.exit_code != 0
    assert "403" in result.stderr
