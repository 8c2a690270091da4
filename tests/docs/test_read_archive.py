"""The reader of docs/read_archive.py knows nothing of our packages, and reads every record of an archive as Kafka did."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from golden_logs import broker_logs, expected_records, legacy_logs, legacy_partitions, partitions, record_digest

from tiering.cli import main

READER = Path(__file__).parents[2] / "docs" / "read_archive.py"


@pytest.fixture(scope="module", params=["identity", "zstd"])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden logs, archived."""
    archived = tmp_path_factory.mktemp("archive")
    compress = ["--compress", "zstd"] if request.param == "zstd" else []
    for logs in (broker_logs(tmp_path_factory.mktemp("broker")), legacy_logs(tmp_path_factory.mktemp("legacy"))):
        found = CliRunner().invoke(main, ["offload", "--log-dir", str(logs), "--archive", str(archived), *compress])
        assert found.exit_code == 0, found.output
    return archived


def read(archive: Path, partition: str) -> list[dict[str, object]]:
    topic, _, number = partition.rpartition("-")
    command = [sys.executable, "-I", str(READER), str(archive), topic, number]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def archived(archive: Path) -> list[str]:
    return [p for p in (*partitions(), *legacy_partitions()) if (archive / p.rpartition("-")[0]).is_dir()]


def last_offsets(archive: Path, partition: str) -> list[int]:
    """The last offset that the archive has of a partition, by Kafka's own reading of the segment; none of one without records."""
    topic, _, number = partition.rpartition("-")
    (newest,) = [min(found.glob("*.json")) for found in (archive / topic).glob(f"*/{number}/manifest")]
    return [entry["last_offset"] for entry in json.loads(newest.read_bytes())["entries"][-1:]]


def test_every_record_of_every_codec_is_as_kafka_read_it(archive: Path) -> None:
    seen = 0
    for partition in archived(archive):
        rows = read(archive, partition)
        found, expected = [record_digest(row) for row in rows], expected_records(partition)
        start = expected.index(found[0]) if found else 0
        assert found == list(expected[start : start + len(found)]), partition
        assert [row["offset"] for row in rows[-1:]] == last_offsets(archive, partition), partition
        seen += len(found)
    assert seen > 10_000


def test_it_imports_none_of_our_packages() -> None:
    code = "import sys, runpy; runpy.run_path(sys.argv[1]); print(sorted(m.partition('.')[0] for m in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code, str(READER)], capture_output=True, text=True, check=True).stdout
    assert not {"tiering", "remote", "local_log", "pyarrow", "numpy"} & set(loaded.replace("'", "").strip("[]\n").split(", "))
