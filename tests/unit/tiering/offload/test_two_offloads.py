"""Two offloads at once, in two processes, on one archive: one chain of manifests, and every segment named once."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from golden_logs import broker_logs
from logs_to_archive import due

from remote import archive
from remote.keys import PartitionPath, parse_manifest_key
from remote.manifest.stamped_json import sha256
from remote.store.api import ObjectStore
from remote.store.open import open_store

PARTITIONS = ("g-big-0", "g-codec-none-0", "g-compacted-0", "g-txn-0")
ROUNDS = 3
# What a command imports is imported before the first start is given, so that both are at work at once.
OFFLOAD = """
import sys
import remote.store.s3.store
import tiering.offload.run
from tiering.cli import main
print("ready", flush=True)
for url in sys.stdin:
    try:
        main([*sys.argv[1:], "--archive", url.strip()])
    except SystemExit as end:
        print("exit", int(end.code), flush=True)
"""


class Offloader:
    """A process that offloads a log directory to each address that it is told."""

    def __init__(self, logs: Path) -> None:
        command = [sys.executable, "-c", OFFLOAD, "offload", "--log-dir", str(logs), "--output", "jsonl"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def start(self, url: str) -> None:
        self.stdin.write(f"{url}\n")
        self.stdin.flush()

    def printed_until(self, last: str) -> list[str]:
        """The lines before `last`, which has to come; pytest's time limit ends the wait for it."""
        lines = []
        for line in self.stdout:
            if line.strip() == last:
                return lines
            assert not line.startswith("exit"), line
            lines.append(line)
        raise AssertionError(f"the process ended with {self.process.wait()}")

    def end(self) -> None:
        self.stdin.close()
        self.stdout.close()
        self.process.wait()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return broker_logs(tmp_path / "logs", *PARTITIONS)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where archives can be made."""
    return f"s3://{request.getfixturevalue('s3_bucket')}" if request.param == "s3" else str(tmp_path)


@pytest.fixture
def offloaders(logs: Path, place: str) -> Iterator[tuple[Offloader, ...]]:
    """Two processes that are ready to start."""
    both = tuple(Offloader(logs) for _ in range(2))
    for offloader in both:
        offloader.printed_until("ready")
    yield both
    for offloader in both:
        offloader.end()


def assert_one_chain(store: ObjectStore, path: PartitionPath) -> None:
    """Versions 1, 2, 3 … with none left out, each naming the hash of the one before, each made by another put."""
    stored = {parse_manifest_key(meta.key): store.get(meta.key) for meta in store.list(path.manifests)}
    assert set(stored) == set(range(1, len(stored) + 1))
    bodies = [stored[version] for version in range(1, len(stored) + 1)]
    chain = [json.loads(body) for body in bodies]
    assert [value["version"] for value in chain] == list(range(1, len(chain) + 1))
    assert [value["parent_sha256"] for value in chain] == ["", *(sha256(body) for body in bodies[:-1])]
    assert len({value["put_id"] for value in chain}) == len(chain)
    for before, after in pairwise(chain):
        assert len(after["entries"]) == len(before["entries"]) + 1


@pytest.mark.slow
def test_two_offloads_at_once_make_one_chain_and_name_every_segment_once(
    logs: Path, place: str, offloaders: tuple[Offloader, ...]
) -> None:
    for number in range(ROUNDS):
        url = f"{place}/archive-{number}"
        for offloader in offloaders:
            offloader.start(url)
        for offloader in offloaders:
            printed = offloader.printed_until("exit 0")
            assert {json.loads(line)["action"] for line in printed} <= {"copied", "archived", "keep"}
        store = open_store(url)
        for partition in PARTITIONS:
            (manifest,) = archive.manifests(store, partition.removesuffix("-0"))
            path = manifest.path
            assert_one_chain(store, path)
            assert [(e.base_offset, e.end_offset) for e in manifest.entries] == due(logs, partition)
            assert manifest.gaps == ()
            for entry in manifest.entries:
                log = (logs / partition / f"{entry.base_offset:020d}.log").read_bytes()
                assert store.get(path.segment(entry.log_name)) == log
