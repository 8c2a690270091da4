"""A task of the job offload, called as an executor calls it: what it archives, run once, twice, at once, after it was killed."""

import pickle
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from golden_logs import broker_logs
from job_processes import environment
from key_files import write_keys
from logs_to_archive import drop_segments_below, due, set_checkpoint
from offloaded_once import assert_one_sound_chain

from local_log.errors import Corrupt, LogError, NotFound
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, parse_partition_dir
from remote import archive
from remote.clock import RandomIds, SystemClock
from remote.store.open import open_store
from spark_jobs.common.mounted import SharedLogDir
from spark_jobs.offload.task import DELETED, OffloadedSlice, OffloadItem, OffloadSpec, offload_slice
from tiering.log_dirs import log_dir
from tiering.machine import open_archive_store

NAMES = ("g-big-0", "g-codec-lz4-0", "g-txn-0")

ONE_SLICE = """
import pickle, sys
from spark_jobs.offload.task import offload_slice
offload_slice(*pickle.loads(bytes.fromhex(sys.stdin.read())))
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return broker_logs(tmp_path / "logs", *NAMES)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """An archive in which there is nothing yet."""
    found = str(tmp_path / "archive")
    archive.create_archive(open_store(found), SystemClock(), RandomIds())
    return found


def spec_of(logs: Path, url: str) -> OffloadSpec:
    source = log_dir(str(logs))
    shared = SharedLogDir.of(source, source.partitions())
    return OffloadSpec(shared, url, None, False, None, 1 << 20, None, 2, False, False)


def items(*names: str) -> list[OffloadItem]:
    return [OffloadItem(p) for name in names if (p := parse_partition_dir(name)) is not None]


def run(spec: OffloadSpec, of: list[OffloadItem]) -> OffloadedSlice:
    """As an executor does: what comes and goes is pickled."""
    done: OffloadedSlice = pickle.loads(pickle.dumps(offload_slice(*pickle.loads(pickle.dumps((spec, of))))))
    return done


def actions(done: OffloadedSlice, name: str = "g-txn-0") -> dict[str, int]:
    return {row.action: row.segments for row in done.rows if str(row.partition) == name}


def sizes(logs: Path, name: str) -> int:
    return sum((logs / name / f"{base:020d}.log").stat().st_size for base, _ in due(logs, name))


def test_a_slice_is_archived_and_the_next_task_finds_it_so(logs: Path, url: str) -> None:
    spec = spec_of(logs, url)
    first, second = (run(spec, items(*NAMES)) for _ in range(2))
    for name in NAMES:
        assert_one_sound_chain(url, logs, name)
    assert (actions(first), actions(second)) == ({"copied": 3, "keep": 1}, {"archived": 3, "keep": 1})
    assert [row.bytes for row in first.rows if row.action == "copied" and row.segments == 3] == [sizes(logs, "g-txn-0")]
    assert {str(p) for p in first.changes} == set(NAMES)


def test_a_dry_run_says_how_many_bytes_are_due_and_copies_none(logs: Path, tmp_path: Path) -> None:
    spec = replace(spec_of(logs, str(tmp_path / "none")), is_dry_run=True, is_archive_missing=True)
    done = run(spec, items("g-txn-0"))
    assert [(row.action, row.segments, row.bytes) for row in done.rows] == [("copy", 3, sizes(logs, "g-txn-0")), ("keep", 1, 0)]
    assert not (tmp_path / "none").exists()


def test_two_tasks_with_the_same_slice_at_once_leave_one_chain(logs: Path, url: str) -> None:
    spec = spec_of(logs, url)
    with ThreadPoolExecutor(2) as pool:
        twins = [*pool.map(partial(run, spec), [items("g-txn-0"), items("g-txn-0")])]
    assert_one_sound_chain(url, logs, "g-txn-0")
    done = [actions(twin) for twin in twins]
    assert sum(of.get("copied", 0) for of in done) == 3
    assert sum(sum(of.values()) for of in done) == 8
    assert all(row.error is None for twin in twins for row in twin.rows)


@pytest.mark.slow
def test_a_task_that_is_killed_and_run_again_leaves_one_chain(logs: Path, url: str) -> None:
    spec = spec_of(logs, url)
    sent = pickle.dumps((replace(spec, bytes_per_second=400_000), items("g-txn-0"))).hex()
    task = subprocess.Popen([sys.executable, "-c", ONE_SLICE], stdin=subprocess.PIPE, text=True, env=environment())
    assert task.stdin is not None
    task.stdin.write(sent)
    task.stdin.close()
    end = time.monotonic() + 60
    while not any(Path(url).rglob("manifest/*.json")):
        assert time.monotonic() < end
        assert task.poll() is None
        time.sleep(0.02)
    task.kill()
    task.wait()
    done = run(spec, items("g-txn-0"))
    assert actions(done)["archived"] >= 1
    assert_one_sound_chain(url, logs, "g-txn-0")


def test_a_damaged_partition_keeps_its_error_on_the_way_to_the_driver_and_stops_no_other(logs: Path, url: str) -> None:
    file = logs / "g-txn-0" / f"{102:020d}.log"
    body = bytearray(file.read_bytes())
    body[5_000] ^= 1
    file.write_bytes(body)
    done = run(spec_of(logs, url), items(*NAMES))
    (refused,) = (row for row in done.rows if row.error is not None)
    assert isinstance(refused.error, Corrupt)
    assert refused.error.file == str(file)
    assert (str(refused.partition), refused.action, refused.segments) == ("g-txn-0", "refused", 1)
    assert actions(done) == {"copied": 2, "refused": 1, "keep": 1}
    for name in ("g-big-0", "g-codec-lz4-0"):
        assert actions(done, name)["copied"] == len(due(logs, name))


def test_a_partition_that_was_deleted_since_the_listing_is_skipped_and_nothing_of_it_is_lost(logs: Path, url: str) -> None:
    spec, known = spec_of(logs, url), run(spec_of(logs, url), items(*NAMES)).changes
    shutil.rmtree(logs / "g-big-0")
    done = run(spec, [replace(item, known=known[item.partition]) for item in items(*NAMES)])
    assert [(row.action, row.segments, row.reason) for row in done.rows if str(row.partition) == "g-big-0"] == [
        ("skipped", 0, DELETED)
    ]
    (manifest,) = archive.newest_manifests(open_store(url), "g-big")
    assert manifest.losses == ()


def test_what_a_topic_of_the_same_name_has_lost_is_recorded_by_the_task(logs: Path, url: str) -> None:
    spec, of = spec_of(logs, url), items("g-big-0")
    known = run(spec, of).changes[of[0].partition]
    assert known is not None
    former = replace(known, topic_id="B" * 21 + "A", recorded_ms=0)
    rows = run(spec, [replace(of[0], known=former)]).rows
    assert [row.action for row in rows] == ["lost", "archived", "keep"]
    assert "of the former topic with id " + "B" * 21 in rows[0].reason


def test_offsets_that_were_deleted_before_a_copy_have_a_row(logs: Path, url: str) -> None:
    set_checkpoint(logs / HIGH_WATERMARK_CHECKPOINT, "g-txn-0", 110)
    run(spec_of(logs, url), items("g-txn-0"))
    drop_segments_below(logs, "g-txn-0", 2_683)
    (lost,) = (row for row in run(spec_of(logs, url), items("g-txn-0")).rows if row.action == "lost")
    assert (lost.segments, lost.bytes) == (1, 0)
    assert "offsets [102, 2683) are lost" in lost.reason


def test_a_task_compresses_encrypts_and_signs_with_keys_that_it_opens_itself(logs: Path, url: str, tmp_path: Path) -> None:
    keys = str(write_keys(tmp_path / "keys.json", "one", one=bytes(32)))
    spec = replace(spec_of(logs, url), keys_address=keys, encrypt_with=keys, compress=True)
    assert actions(run(spec, items("g-txn-0"))) == {"copied": 3, "keep": 1}
    (manifest,) = archive.newest_manifests(open_archive_store(url, keys), "g-txn")
    assert {entry.encoding for entry in manifest.entries} == {"zstd+aes-256-gcm"}
    with pytest.raises(LogError, match=r"keys\.json"):
        run(replace(spec, encrypt_with=str(tmp_path / "none" / "keys.json")), items("g-txn-0"))


def test_a_slice_of_a_directory_that_is_not_mounted_is_not_done_at_all(logs: Path, url: str) -> None:
    spec = spec_of(logs, url)
    logs.rename(logs.with_name("elsewhere"))
    with pytest.raises(NotFound, match="is not there; mount it"):
        run(spec, items(*NAMES))
    assert archive.topics(open_store(url)) == ()
