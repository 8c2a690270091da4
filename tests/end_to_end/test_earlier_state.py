"""What version 0.1.0 has left behind, an archive and what is remembered beside it, serves today as it did then."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import MemoryStore
from earlier_state import Asked, Row, answers, key_file, run, unpacked

from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk, OsWritableDisk
from remote import archive as archives
from remote.signed_store import RolledBack, SignedStore
from remote.store.open import open_store
from tiering.agent.memory import MemoryFile
from tiering.losses.seen_logs import SeenFile
from tiering.wiring import remembered

KINDS = ("archive", "encoded_archive")
ARCHIVE = "s3://bucket/kafka"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    """The archives, for reading only."""
    folder = tmp_path_factory.mktemp("earlier")
    return {name: asked(name, folder) for name in KINDS}


def asked(name: str, folder: Path) -> Asked:
    """An archive, unpacked into the folder, with its keys."""
    keys = ("--keys", key_file(folder)) if name == "encoded_archive" else ()
    return Asked(unpacked(name, folder / name), *keys)


def as_told_today(row: Row) -> Row:
    """What the plan calls expire was called give up in version 0.1.0."""
    return {**row, "action": "expire" if row["action"] == "give up" else row["action"]}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """An archive of plain segments, and one whose segments are compressed and encrypted and whose manifests are signed."""
    name: str = request.param
    return name


def test_every_partition_is_described_as_then(earlier: dict[str, Asked], kind: str) -> None:
    assert earlier[kind].described() == answers()[kind]["described"]


def test_every_record_is_read_as_then(earlier: dict[str, Asked], kind: str) -> None:
    """Whole partitions and parts of them, up to a gap and behind it."""
    assert earlier[kind].records() == answers()[kind]["records"]


def test_offsets_are_found_by_time_as_then(earlier: dict[str, Asked], kind: str) -> None:
    assert earlier[kind].offsets() == answers()[kind]["offsets"]


def test_a_scrub_finds_what_it_found_then(earlier: dict[str, Asked], kind: str) -> None:
    assert earlier[kind].scrubbed() == answers()[kind]["scrubbed"]


def test_what_would_expire_is_what_would_have_then(earlier: dict[str, Asked], kind: str) -> None:
    then = {settings: [as_told_today(row) for row in rows] for settings, rows in answers()[kind]["expiring"].items()}
    assert earlier[kind].expiring() == then


def test_a_sweep_would_delete_what_it_would_have_then(earlier: dict[str, Asked], kind: str) -> None:
    assert earlier[kind].swept() == answers()[kind]["swept"]


def test_a_restore_writes_the_files_that_it_wrote_then(earlier: dict[str, Asked], kind: str, tmp_path: Path) -> None:
    assert earlier[kind].restored(tmp_path / "restored") == answers()[kind]["restored"]


def test_a_sweep_leaves_every_record_and_ends_the_write_that_nobody_decided(kind: str, tmp_path: Path) -> None:
    own = asked(kind, tmp_path)
    assert own.rows("sweep", "--yes")
    assert own.records() == answers()[kind]["records"]
    assert {finding for finding, *_ in own.scrubbed()} <= {"gap", "lost"}


def test_what_expires_is_gone_and_the_rest_is_read_as_then(tmp_path: Path) -> None:
    """Of the records of payments the first half are of 2023."""
    own = asked("archive", tmp_path)
    own.rows("expire", "--topic", "payments", "-c", "retention.ms=31536000000", "--yes")
    (row,) = (row for row in own.described() if row["topic"] == "payments")
    assert (row["log_start_offset"], row["archived_up_to"]) == (45, 75)
    (left,) = (of for name, of in own.records().items() if name == "payments 0 45 read_committed")
    assert left[:2] == [0, 30]


# What is remembered beside an archive


@pytest.fixture
def offload(tmp_path: Path) -> Any:
    """`offload(state)`: the exit code and rows of an offload of the log directory of then, which remembers in that folder."""
    archive, logs = unpacked("archive", tmp_path / "archive"), tmp_path / "logs"

    def offloaded(state: Path) -> tuple[int, list[Row]]:
        where = ("--log-dir", logs, "--archive", archive, "--state-dir", state)
        result = run("offload", *where, "--output", "jsonl")
        return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]

    return offloaded


def test_an_offload_finds_everything_archived(offload: Any, tmp_path: Path) -> None:
    shutil.rmtree(unpacked("logs", tmp_path / "logs") / "abandoned-0")  # the topic was deleted from the archive
    code, rows = offload(tmp_path / "state")
    assert code == 0
    assert {row["action"] for row in rows} == {"archived", "keep"}


@pytest.mark.parametrize("is_remembered", [True, False])
def test_an_offload_notices_what_has_disappeared_since_then(offload: Any, tmp_path: Path, is_remembered: bool) -> None:
    logs = unpacked("logs", tmp_path / "logs")
    state = unpacked("offload_state", tmp_path / "state")
    (file,) = state.iterdir()
    log_dir, archive = LogDir(OsDisk(), str(logs)), open_store(str(tmp_path / "archive")).url
    of_today = SeenFile.of(OsWritableDisk(), str(state), log_dir, log_dir.id(), archive)
    file.rename(state / (of_today.name if is_remembered else "another.json"))  # its name is of where both lay
    for gone in ("payments-0", "abandoned-0"):
        shutil.rmtree(logs / gone)
    code, rows = offload(state)
    lost = [(row["topic"], row["partition"]) for row in rows if row["action"] == "lost"]
    assert (code, lost) == ((3, [("payments", 0)]) if is_remembered else (0, []))


def test_files_of_state_have_the_names_that_they_had_then() -> None:
    logs = "/no/such/kafka-logs"
    agent = MemoryFile.of(OsWritableDisk(), "/state", ["/second", logs], ARCHIVE)
    offload = SeenFile.of(OsWritableDisk(), "/state", LogDir(OsDisk(), logs), logs, ARCHIVE)
    assert {"agent": agent.name, "offload": offload.name} == answers()["names"]


def test_an_agent_takes_up_what_the_one_before_it_knew(tmp_path: Path) -> None:
    state = unpacked("agent_state", tmp_path / "state")
    (file,) = state.glob("agent-*.json")
    (logs,) = state.glob("logs-*.json")
    kept, seen = json.loads(file.read_text()), json.loads(logs.read_text())["logs"]
    memory = MemoryFile(OsWritableDisk(), str(state), file.name).load()
    assert memory.scrub is not None
    assert (memory.swept_ms, memory.address) == (kept["swept_ms"], kept["address"])
    assert memory.scrub.findings == tuple(kept["scrub"]["findings"])
    assert [one.split(":")[0] for one in memory.scrub.findings] == ["lost"]
    archived = {name: (of.log_start_offset, of.end_offset, of.gaps) for name, of in memory.archived.items()}
    assert archived["orders-0"] == (40, 171, ())
    assert archived["orders-1"] == (0, 135, ((63, 99),))
    remembered_logs = SeenFile(OsWritableDisk(), str(state), logs.name).load()
    assert {str(name): [of.topic_id, of.start_offset, of.end_offset] for name, of in remembered_logs.items()} == {
        name: of[:3] for name, of in seen.items()
    }
    assert len(seen) == 5


def test_a_manifest_that_was_set_back_is_found_by_what_was_seen_then(tmp_path: Path) -> None:
    """The newest versions were seen in a store with this address."""
    files = unpacked("archive", tmp_path / "archive")
    store = MemoryStore()
    store.objects = {str(p.relative_to(files)): p.read_bytes() for p in files.rglob("*") if p.is_file()}
    trusted = SignedStore(store, seen=remembered(str(unpacked("seen", tmp_path / "state"))))
    versions = [manifest.version for manifest in archives.newest_manifests(trusted, "orders")]
    assert versions == [20, 11]
    (newest,) = (key for key in store.objects if key.startswith("orders/") and key.endswith("-v20.json"))
    del store.objects[newest]
    with pytest.raises(RolledBack, match="version 19 is the newest, and version 20 was there before"):
        archives.newest_manifests(trusted, "orders")
