"""The machine stops, or the store fails, at any call of a restore: run again, it ends the same, and no broker starts before."""

import pytest
from archive_fakes import Crash, CrashesAt, FailsBefore, MemoryStore, Nth
from golden_logs import broker_logs
from logs_to_archive import cut_finer, offload_all
from restored_logs import downloaded, run, run_soundly
from simulated_disk import Crashed, SimulatedDisk

from local_log.disk import WritableDisk
from local_log.errors import LogError, Unavailable
from local_log.formats.filenames import LOCK
from tiering.restore.target import UNFINISHED

PARTITIONS = ("g-compacted-0", "g-trimmed-0", "g-txn-0")
TO = "/logs"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> MemoryStore:
    """Three partitions: one of them starts within its first segment, of one a marker was not archived."""
    folder, store = broker_logs(tmp_path_factory.mktemp("logs"), *PARTITIONS), MemoryStore()
    cut_finer(folder / "g-txn-0", 6)
    offload_all(folder, store)
    return store


def contents(disk: SimulatedDisk) -> dict[str, bytes]:
    return {path: body for path, body in disk.contents(TO).items() if not path.endswith((LOCK, ".tmp"))}


@pytest.fixture(scope="module")
def expected(store: MemoryStore) -> dict[str, bytes]:
    disk = SimulatedDisk()
    run_soundly(store, TO, disk)
    return contents(disk)


def calls(store: MemoryStore, until_offset: int | None = None) -> int:
    disk = SimulatedDisk()
    run(store, TO, disk, until_offset=until_offset)
    return len(disk.calls)


def may_start(disk: WritableDisk) -> bool:
    """Whether a broker would start on the directory and find logs in it."""
    return disk.is_folder(TO) and UNFINISHED not in disk.names(TO) and any(n.endswith("-0") for n in disk.names(TO))


def crashed(store: MemoryStore, at: int, until_offset: int | None = None) -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.crash_after = at
    with pytest.raises(Crashed):
        run(store, TO, disk, until_offset=until_offset)
    return disk


def everything(disk: SimulatedDisk, folder: str = "") -> frozenset[tuple[str, bytes]]:
    """All files with their bytes, and all folders."""
    paths = [f"{folder}/{name}" for name in disk.names(folder)]
    folders = [path for path in paths if disk.is_folder(path)]
    below = [everything(disk, path) for path in folders]
    return frozenset((path, b"" if path in folders else disk.read(path)) for path in paths).union(*below)


def test_whatever_call_the_power_fails_at_the_next_run_ends_the_same(store: MemoryStore, expected: dict[str, bytes]) -> None:
    seen, failing = set[frozenset[tuple[str, bytes]]](), SimulatedDisk()

    def after_call() -> None:
        at = len(failing.calls)
        for lost in (0.0, 0.5, 1.0):
            disk = failing.after_power_failure(lost, seed=at)
            if (left := everything(disk)) in seen:
                continue  # a sync changes nothing, and what was not synced leaves nothing
            seen.add(left)
            if may_start(disk):
                assert contents(disk) == expected, f"a broker could start on what call {at} has left"
            run_soundly(store, TO, disk)
            assert contents(disk) == expected, f"after call {at}"

    failing.on_call = after_call
    run_soundly(store, TO, failing)
    assert len(seen) > 100


def test_a_power_failure_at_the_second_run_too_changes_nothing(store: MemoryStore, expected: dict[str, bytes]) -> None:
    last = calls(store)
    for at in range(1, last + 1, 7):
        disk = crashed(store, at).after_power_failure(0.5, seed=at)
        disk.crash_after = len(disk.calls) + (at * 31) % last + 1
        try:
            run(store, TO, disk)
        except Crashed:
            disk = disk.after_power_failure(0.5, seed=at)
        else:
            disk.crash_after = None
        run_soundly(store, TO, disk)
        assert contents(disk) == expected, f"after call {at}"


def test_a_cut_log_comes_out_the_same_after_a_power_failure_at_any_call(store: MemoryStore) -> None:
    whole = SimulatedDisk()
    run_soundly(store, TO, whole, until_offset=1700)
    for at in range(1, calls(store, 1700) + 1, 3):
        disk = crashed(store, at, 1700).after_power_failure(0.5, seed=at)
        run_soundly(store, TO, disk, until_offset=1700)
        assert contents(disk) == contents(whole), f"after call {at}"


def test_a_killed_restore_goes_on_with_what_it_has(store: MemoryStore, expected: dict[str, bytes]) -> None:
    everything = downloaded(run_soundly(store, TO, SimulatedDisk()))
    before = everything
    for at in range(20, calls(store), 20):
        disk = crashed(store, at).after_kill()
        again = downloaded(run_soundly(store, TO, disk))
        assert again <= before
        before = again
    assert before == 0


@pytest.mark.parametrize("after", [False, True])
def test_whatever_store_call_the_process_is_killed_at_the_next_run_ends_the_same(
    store: MemoryStore, expected: dict[str, bytes], after: bool
) -> None:
    number = 0
    while True:
        number += 1
        door, disk = CrashesAt(store, number, after=after), SimulatedDisk()
        try:
            run(door, TO, disk)
        except Crash:
            pass
        else:
            break
        left = disk.after_kill()
        assert not may_start(left)
        run_soundly(store, TO, left)
        assert contents(left) == expected
    assert number > 30


def test_whatever_read_the_store_fails_at_it_is_told_and_the_next_run_ends_the_same(
    store: MemoryStore, expected: dict[str, bytes]
) -> None:
    reads = 0
    for number in range(1, 1000):
        nth, disk = Nth("get_range", number), SimulatedDisk()
        results = run(FailsBefore(store, Unavailable("503"), nth), TO, disk)
        if nth.seen < number:
            break
        reads += 1
        assert [type(done.error) for done in results if done.error] == [Unavailable]
        assert not may_start(disk)
        run_soundly(store, TO, disk)
        assert contents(disk) == expected
    assert reads > 20


def test_a_damaged_object_keeps_only_its_own_partition_from_being_finished(store: MemoryStore) -> None:
    damaged = MemoryStore()
    damaged.objects |= store.objects
    key = next(k for k in sorted(store.objects) if k.startswith("g-txn/") and k.endswith(".log"))
    body = bytearray(store.objects[key])
    body[len(body) // 2] ^= 1
    damaged.objects[key] = bytes(body)
    disk = SimulatedDisk()
    results = run(damaged, TO, disk)
    [error] = [done.error for done in results if done.error]
    assert isinstance(error, LogError)
    assert key in str(error)
    assert [n for n in disk.names(TO) if n.endswith("-0")] == ["g-compacted-0", "g-trimmed-0"]
    assert disk.names(f"{TO}/{UNFINISHED}") == ["g-txn-0"]
    results = run_soundly(store, TO, disk)
    assert len(body) <= downloaded(results) < 2 * len(body)
