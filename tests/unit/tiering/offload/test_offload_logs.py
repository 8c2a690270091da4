"""Many logs into one archive: in order whatever the number of threads, and what goes wrong with one stops no other."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import WRITES, CountingIds, Door, FailsBefore, FixedClock, MemoryStore, verbs
from golden_logs import broker_logs, partitions
from logs_to_archive import copy_of, local_logs, path_of
from made_manifests import assert_sound_archive
from one_offload import due_ranges, named

from local_log.errors import Corrupt, NotFound, Unavailable, Unreadable
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from tiering.offload.copy import Done
from tiering.offload.plan import Action
from tiering.offload.run import UNANSWERED_MAX, OffloadLogs, Result

THREADS = [1, 2, 5]


class SafeIds(CountingIds):
    """One `next` of a counter is one step of the interpreter, so threads may share it."""


def offload(store: ObjectStore, *, progress: Callable[[int], None] = lambda _: None, dry_run: bool = False) -> OffloadLogs:
    return OffloadLogs(store, FixedClock(), SafeIds(), "source", progress, is_dry_run=dry_run)


def summary(results: list[Result]) -> list[tuple[str, int | None, str]]:
    return [
        (str(log.partition), done.decision.segment.base_offset if done.decision else None, kind(done)) for log, done in results
    ]


def kind(done: Done) -> str:
    if done.entry or done.error:
        return "copied" if done.entry else type(done.error).__name__
    return done.decision.action if done.decision else "gone"


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.slow
def test_results_and_archive_are_those_of_one_after_the_other(finer: Path, threads: int) -> None:
    store, alone = MemoryStore(), MemoryStore()
    logs = list(local_logs(finer).values())
    results = list(offload(store).run(logs, threads))
    assert summary(results) == summary([r for log in logs for r in offload(alone).run([log], 1)])
    for log in logs:
        if due_ranges(log):
            manifest = assert_sound_archive(store, path_of(log))
            assert named(manifest) == due_ranges(log)
            assert manifest.version == len(manifest.entries)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.slow
def test_a_plan_prints_what_a_run_would_do_and_does_nothing(finer: Path, threads: int) -> None:
    store = MemoryStore()
    logs = list(local_logs(finer).values())
    planned = list(offload(store, dry_run=True).run(logs, threads))
    assert store.objects == {}
    assert WRITES.isdisjoint(verbs(store.calls))
    done = list(offload(store).run(logs, threads))
    assert [(log, d.decision) for log, d in planned] == [(log, d.decision) for log, d in done]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.slow
def test_a_log_that_fails_stops_no_other(tmp_path: Path, finer: Path, threads: int) -> None:
    folder = copy_of(finer, tmp_path / "logs")
    damaged, stranger, deleted, locked = "g-codec-lz4-0", "g-big-0", "g-epochs-0", "g-txn-0"
    logs: dict[str, LogReader | Unopened] = {**local_logs(folder)}
    second = sorted((folder / damaged).glob("*.log"))[1]
    second.write_bytes(second.read_bytes()[:-1])
    (folder / stranger / "partition.metadata").write_text("what is this\n")
    (folder / deleted).rename(folder / f"{deleted}.0123456789abcdef0123456789abcdef-delete")
    logs[locked] = Unopened(logs[locked].partition, Unreadable(f"{folder}/{locked}: Permission denied"))
    store = MemoryStore()
    results = list(offload(store).run(logs.values(), threads))
    kinds: dict[str, set[str]] = {}
    for partition, _, what in summary(results):
        kinds.setdefault(partition, set()).add(what)
    assert kinds[damaged] >= {"copied", "Corrupt", Action.keep}
    assert kinds[stranger] == {"Corrupt"}
    assert kinds[deleted] == {"gone"}
    assert kinds[locked] == {"Unreadable"}
    for name in set(partitions()) - {damaged, stranger, deleted, locked}:
        assert kinds[name] <= {"copied", Action.keep}
        log = logs[name]
        assert isinstance(log, LogReader)
        if due_ranges(log):
            assert named(assert_sound_archive(store, path_of(log))) == due_ranges(log)
    (gone,) = [done for log, done in results if str(log.partition) == deleted]
    assert "its broker has deleted or moved it in the meantime" in gone.notes[0]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.slow
def test_a_store_that_fails_for_one_partition_stops_no_other(finer: Path, threads: int) -> None:
    logs = local_logs(finer)
    store = MemoryStore()
    door = FailsBefore(store, Unavailable("slow down"), lambda verb, key: verb == "upload" and key.startswith("g-txn/"))
    results = list(offload(door).run(logs.values(), threads))
    failed = {str(log.partition) for log, done in results if done.error}
    assert failed == {"g-txn-0"}
    for name, log in logs.items():
        newest = load_newest(store, path_of(log))
        if name != "g-txn-0" and due_ranges(log):
            assert newest is not None
            assert named(newest.manifest) == due_ranges(log)


def test_a_store_that_answers_nobody_is_given_up_after_a_few_partitions(finer: Path) -> None:
    store = MemoryStore()
    door = FailsBefore(store, Unavailable("down"), lambda verb, key: True)
    results = list(offload(door).run(local_logs(finer).values(), 1))
    assert len(results) == len(partitions())
    assert all(isinstance(done.error, Unavailable) for _, done in results)
    assert len(door.calls) == UNANSWERED_MAX
    assert str(results[-1][1].error).startswith(f"{results[-1][0].partition} was skipped")


def test_whoever_asks_for_no_more_results_stops_the_work(finer: Path) -> None:
    logs = local_logs(finer)
    for threads in THREADS:
        store = MemoryStore()
        stream = offload(store).run(logs.values(), threads)
        first = next(stream)
        stream.close()  # type: ignore[attr-defined]
        assert first[0].partition == next(iter(logs.values())).partition
        begun = {key.partition("/")[0] for key in store.objects}
        assert len(begun) <= threads + 1
        for log in logs.values():
            if load_newest(store, path_of(log)) is not None:
                assert_sound_archive(store, path_of(log))


def test_a_bug_in_one_thread_is_raised_and_not_lost(finer: Path) -> None:
    class Broken(Door):
        def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
            if key.startswith("g-codec-zstd/"):
                raise ZeroDivisionError
            return call()

    with pytest.raises(ZeroDivisionError):
        list(offload(Broken(MemoryStore())).run(local_logs(finer).values(), 3))


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.slow
def test_progress_is_told_every_byte_that_is_sent_once(finer: Path, threads: int) -> None:
    told: list[int] = []
    logs = local_logs(finer)
    list(offload(MemoryStore(), progress=told.append).run(logs.values(), threads))
    copied = sum(
        s.size() for log in logs.values() for s in log.segments if (s.base_offset, s.next_base_offset) in due_ranges(log)
    )
    assert sum(told) == copied


def test_a_directory_without_the_log_it_listed_is_no_error_of_the_others(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path, "g-tiny-0", "g-txn-0")
    found = LogDir(OsDisk(), str(folder)).found()
    for file in (folder / "g-tiny-0").iterdir():
        file.unlink()
    (folder / "g-tiny-0").rmdir()
    results = list(offload(MemoryStore()).run(found, 2))
    assert [done.error for _, done in results if isinstance(done.error, Corrupt | NotFound)] == []
    assert ("g-txn-0", 0, "copied") in summary(results)
