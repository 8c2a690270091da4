"""A task of the job expire, called as an executor calls it: what it expires, run once, twice and at once, and what it asks."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import TypeVar

import pytest
from archive_fakes import Door
from golden_logs import broker_logs
from made_archive import TOPIC_ID, made

from local_log.errors import Corrupt, NotFound, Unavailable
from remote import archive
from remote.keys import PROBE_PREFIX, PartitionPath
from remote.manifest.model import Manifest
from remote.store.open import open_store
from spark_jobs.common.mounted import SharedLogDir
from spark_jobs.expire import task
from spark_jobs.expire.task import AskedBrokers, ExpiredSlice, ExpireSpec, expire_slice
from tiering.cluster import BrokerRetention
from tiering.log_dirs import log_dir
from tiering.retention.policy import read_given
from tiering.retention.run import COLUMNS

T = TypeVar("T")

PATHS = [PartitionPath("made", TOPIC_ID, n) for n in range(5)]
SETTINGS = ("retention.ms=1000", "file.delete.delay.ms=0")


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of five partitions of two old segments each."""
    folder = tmp_path_factory.mktemp("five")
    for path in PATHS:
        made(open_store(str(folder)), [[[1]], [[2]]], partition=path.partition)
    return folder


@pytest.fixture
def url(five: Path, tmp_path: Path) -> str:
    """A copy of it."""
    return str(copytree(five, tmp_path / "archive"))


def spec_of(url: str, *settings: str, source: SharedLogDir | None = None, brokers: AskedBrokers | None = None) -> ExpireSpec:
    given = read_given(settings or SETTINGS)
    return ExpireSpec(url, None, given, source, source is None, False, brokers or AskedBrokers({}))


def run(spec: ExpireSpec, paths: list[PartitionPath], *, is_dry_run: bool = False) -> ExpiredSlice:
    """As an executor does: what comes and goes is pickled."""
    done = expire_slice(*pickle.loads(pickle.dumps((spec, is_dry_run, paths))))
    sent: ExpiredSlice = pickle.loads(pickle.dumps(done))
    return sent


def actions(done: ExpiredSlice) -> list[tuple[int, str]]:
    rows = (dict(zip(COLUMNS, row, strict=True)) for row in done.rows)
    return [(row["partition"], row["action"]) for row in rows]


def manifests(url: str) -> tuple[Manifest, ...]:
    return archive.newest_manifests(open_store(url), "made")


def test_a_slice_expires_its_own_partitions_and_a_later_one_deletes_their_objects(url: str) -> None:
    assert actions(run(spec_of(url), PATHS[:2], is_dry_run=True)) == [(0, "expire"), (1, "expire")]
    assert [m.log_start_offset for m in manifests(url)] == [0] * 5
    assert actions(run(spec_of(url), PATHS[:2])) == [(0, "expire"), (1, "expire")]
    assert [m.log_start_offset for m in manifests(url)] == [2, 2, 0, 0, 0]
    assert actions(run(spec_of(url), PATHS[:2])) == [(0, "delete"), (1, "delete")]
    assert sorted({file.parts[-3] for file in Path(url).rglob("*.log")}) == ["2", "3", "4"]


@pytest.mark.parametrize(("settings", "logs_left"), [(SETTINGS[:1], 10), (SETTINGS, 0)])
def test_two_tasks_with_the_same_slice_at_once_expire_it_once(url: str, settings: tuple[str, ...], logs_left: int) -> None:
    for _ in range(2):  # the second time they delete what has waited for file.delete.delay.ms
        with ThreadPoolExecutor(2) as pool:
            twins = [*pool.map(partial(run, spec_of(url, *settings)), [PATHS, PATHS])]
        assert [e for twin in twins for e in twin.errors] == []
        assert [(m.log_start_offset, len(m.entries)) for m in manifests(url)] == [(2, 0)] * 5
    assert len(list(Path(url).rglob("*.log"))) == logs_left


def test_the_store_is_asked_for_its_time_once_a_slice(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(open_store(url))
    monkeypatch.setattr(task, "open_archive_store", lambda *_: door)
    assert expire_slice(spec_of(url), False, PATHS).plans == 5
    assert [verb for verb, key, *_ in door.calls if verb == "head" and str(key).startswith(PROBE_PREFIX)] == ["head"]


def test_an_unreadable_manifest_refuses_its_partition_alone(url: str) -> None:
    newest = min(Path(url).glob("made/*/3/manifest/*.json"))
    newest.write_bytes(newest.read_bytes()[:-9])
    done = run(spec_of(url), PATHS)
    assert actions(done) == [(n, "refused" if n == 3 else "expire") for n in range(5)]
    (error,) = done.errors
    assert isinstance(error, Corrupt)
    assert (error.file.endswith(newest.name), done.plans) == (True, 4)


def test_partitions_behind_one_for_which_the_store_did_not_respond_are_skipped_and_said_to_be(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(Door):
        def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
            if verb == "list" and key == PATHS[2].manifests:
                raise Unavailable("no answer")
            return call()

    monkeypatch.setattr(task, "open_archive_store", lambda *_: Broken(open_store(url)))
    done = expire_slice(spec_of(url), False, PATHS)
    assert actions(done) == [(0, "expire"), (1, "expire"), (2, "refused"), (3, "refused"), (4, "refused")]
    assert [str(e) for e in done.errors][:1] == ["no answer"]
    assert "was skipped" in str(done.errors[2])


def test_what_the_driver_has_asked_of_the_brokers_holds(url: str) -> None:
    compacted = AskedBrokers({("made", TOPIC_ID): BrokerRetention(("compact",), None, None)})
    assert actions(run(spec_of(url, brokers=compacted), PATHS)) == [(n, "keep") for n in range(5)]
    unreadable = AskedBrokers({("made", TOPIC_ID): Corrupt("cut", file="metadata")})
    (first, *_) = run(spec_of(url, brokers=unreadable), PATHS).errors
    assert (type(first), str(first)) == (Corrupt, "metadata at byte 0: cut")


def test_the_local_log_counts_where_the_limit_is_of_bytes(url: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    logs = broker_logs(tmp_path_factory.mktemp("logs"), "g-tiny-0")
    source = log_dir(str(logs))
    spec = spec_of(url, "retention.bytes=0", source=SharedLogDir.of(source, source.partitions()))
    done = run(spec, PATHS)
    assert actions(done) == [(n, "refused") for n in range(5)]
    assert f"{logs} has no log of it" in str(done.errors[0])
    logs.rename(logs.with_name("elsewhere"))
    with pytest.raises(NotFound, match="is not there; mount it"):
        run(spec, PATHS)
