"""An executor's process has one key ring for an archive: KMS is asked once for each segment, however often it is read."""

import os
from pathlib import Path
from typing import Any

import pytest
from key_files import write_keys
from made_archive import made

from local_log.errors import NoKey
from remote.clock import SystemRandomness
from remote.store.folder.store import FolderStore
from remote.transforms import aws_kms
from remote.transforms.encoder import Encryption, Transforms
from remote.transforms.key_rings import open_keys
from spark_jobs.read_context import CONTEXT_SECONDS_MAX, CONTEXTS_MAX, ReadContexts
from spark_jobs.source.batch_reader import BatchReader
from spark_jobs.source.options import parse

KMS = "aws-kms://alias/archive"
SEGMENTS = 3


class FakeKms:
    """Wraps by turning the bytes round, and counts the calls of each kind."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def describe_key(self, **_: Any) -> Any:
        self.calls.append("describe")
        return {"KeyMetadata": {"Arn": "arn:key"}}

    def encrypt(self, *, Plaintext: bytes, **_: Any) -> Any:  # noqa: N803  # boto3's names
        self.calls.append("encrypt")
        return {"CiphertextBlob": Plaintext[::-1]}

    def decrypt(self, *, CiphertextBlob: bytes, **_: Any) -> Any:  # noqa: N803
        self.calls.append("decrypt")
        return {"Plaintext": CiphertextBlob[::-1]}


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> FakeKms:
    service = FakeKms()
    monkeypatch.setattr(aws_kms, "_client", lambda key: service)
    return service


def encrypted(folder: Path, keys: str) -> str:
    store = FolderStore(str(folder))
    transforms = Transforms(encryption=Encryption(open_keys(keys), SystemRandomness()))
    made(store, [[[s * 100 + r for r in range(8)]] for s in range(SEGMENTS)], transforms=transforms)
    return store.url


def test_kms_unwraps_the_data_key_of_each_segment_once_for_all_its_splits(tmp_path: Path, kms: FakeKms) -> None:
    url = encrypted(tmp_path / "archive", KMS)
    keys = f"{KMS}?plain=allowed"
    reader = BatchReader(
        parse({"archive": url, "keys": keys, "subscribe": "made", "maxRecordsPerPartition": "2", "pinHours": "0"}), ("value",)
    )
    tasks = reader.partitions()  # type: ignore[call-arg]
    kms.calls.clear()
    rows = sum(batch.num_rows for task in tasks for batch in reader.read(task))
    assert (len(tasks), rows) == (4 * SEGMENTS, 8 * SEGMENTS)
    assert kms.calls == ["decrypt"] * SEGMENTS


def test_a_key_that_was_added_to_the_key_file_is_found_by_the_next_split(tmp_path: Path) -> None:
    file = write_keys(tmp_path / "keys.json", "k1", k1=bytes(32))
    contexts = ReadContexts()
    first = contexts.of("archive", str(file))
    assert contexts.of("archive", str(file)) is first
    assert contexts.of("archive", None) is not first
    with pytest.raises(NoKey):
        open_keys(str(file)).unwrap("k2", b"")
    write_keys(file, "k2", k1=bytes(32), k2=bytes(range(32)))
    assert contexts.of("archive", str(file)) is not first


def test_contexts_end_after_their_time_and_the_oldest_when_there_are_too_many() -> None:
    now = 0.0
    contexts = ReadContexts(lambda: now)
    first = contexts.of("0", None)
    now = CONTEXT_SECONDS_MAX
    assert contexts.of("0", None) is first
    now += 1
    second = contexts.of("0", None)
    assert second is not first
    for n in range(1, CONTEXTS_MAX + 1):
        contexts.of(str(n), None)
    assert contexts.of("0", None) is not second


def test_a_forked_process_shares_no_context(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = ReadContexts()
    first = contexts.of("archive", None)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert contexts.of("archive", None) is not first
