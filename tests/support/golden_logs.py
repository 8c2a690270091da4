"""The golden logs of tests/golden: what a real broker wrote, and what Kafka reads in it."""

import hashlib
import json
import lzma
import tarfile
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

_GOLDEN = Path(__file__).parents[1] / "golden"
_CHECKPOINTS = "checkpoints"
_DIGEST_BYTES = 8


@cache
def partitions() -> tuple[str, ...]:
    """The names of the partitions' folders, in order."""
    names = {file.name.removesuffix(".tar.xz") for file in (_GOLDEN / "broker").glob("*.tar.xz")}
    return tuple(sorted(names - {_CHECKPOINTS}))


def broker_logs(tmp_dir: Path, *only: str) -> Path:
    """Unpacks a fresh log directory into `tmp_dir` (with `only` these partitions of it) and gives its path."""
    for name in (_CHECKPOINTS, *(only or partitions())):
        _extract(f"broker/{name}", tmp_dir)
    return tmp_dir


def metadata_log(tmp_dir: Path) -> Path:
    """Unpacks a log directory with nothing in it but what a live broker keeps of its cluster's metadata, and gives its path."""
    _extract("metadata/__cluster_metadata-0", tmp_dir)
    return tmp_dir


@cache
def legacy_partitions() -> tuple[str, ...]:
    """The names of the folders with messages of magic 0 and 1, in order."""
    return tuple(sorted(file.name.removesuffix(".tar.xz") for file in (_GOLDEN / "legacy").glob("*.tar.xz")))


def legacy_logs(tmp_dir: Path, *only: str) -> Path:
    """Unpacks them as `broker_logs` does, and writes the high watermarks, which are their ends."""
    names = only or legacy_partitions()
    for name in names:
        _extract(f"legacy/{name}", tmp_dir)
    lines = [f"{name.removesuffix('-0')} 0 {live(name)['latest'][0]}" for name in names]
    (tmp_dir / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    return tmp_dir


def expected_batches(partition: str) -> tuple[dict[str, Any], ...]:
    """What Kafka's classes read in each batch's header, segment by segment."""
    return _lines(f"{partition}.batches.jsonl.xz")


def expected_snapshots(partition: str) -> tuple[dict[str, Any], ...]:
    """What Kafka's classes read in the producer snapshots, a producer a line."""
    return _lines(f"{partition}.snapshots.jsonl.xz")


def expected_records(partition: str) -> tuple[bytes, ...]:
    """The digest of every record that Kafka's classes read, control records too: compare with `record_digest`."""
    digests = (_GOLDEN / "expected" / f"{partition}.records.digests").read_bytes()
    return tuple(digests[at : at + _DIGEST_BYTES] for at in range(0, len(digests), _DIGEST_BYTES))


def record_digest(record: dict[str, Any]) -> bytes:
    """The digest of a record: offset, timestamp, sequence, control, key, value and headers, the bytes in base64 or None."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]


@cache
def live(partition: str) -> dict[str, Any]:
    """What the running broker answered about the partition."""
    answers: dict[str, Any] = json.loads(_unpacked(f"expected/{partition}.live.json.xz"))
    return answers


def segments(logs: Path, partition: str) -> list[tuple[str, bytes]]:
    """Name and bytes of each of the partition's log files, in order."""
    return [(file.name, file.read_bytes()) for file in sorted((logs / partition).glob("*.log"))]


@cache
def _lines(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in _unpacked(f"expected/{name}").splitlines())


def _extract(name: str, folder: Path) -> None:
    with tarfile.open(fileobj=BytesIO(_unpacked(f"{name}.tar.xz"))) as archive:
        archive.extractall(folder, filter="data")


@cache
def _unpacked(name: str) -> bytes:
    """All of it is 16 MB, and hundreds of tests ask for some."""
    return lzma.decompress((_GOLDEN / name).read_bytes())


@cache
def crashed_partitions() -> tuple[str, ...]:
    """The names of the folders that a killed broker left."""
    return tuple(sorted(file.name.removesuffix(".tar.xz") for file in (_GOLDEN / "crash").glob("*.tar.xz")))


def crashed_logs(tmp_dir: Path) -> Path:
    """Unpacks the folders that a killed broker left."""
    for name in crashed_partitions():
        _extract(f"crash/{name}", tmp_dir)
    return tmp_dir


def after_the_crash(partition: str) -> dict[str, str]:
    """The SHA-256 of each file once the broker had been started again and stopped."""
    digests: dict[str, dict[str, str]] = json.loads((_GOLDEN / "crash" / "after.json").read_bytes())
    return digests[partition]
