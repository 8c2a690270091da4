"""A folder of files that may be lost: bounded, checked when read back, safe for threads and processes."""

import os
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock
from simulated_disk import SimulatedDisk

from local_log.errors import Unreadable
from local_log.os_disk import OsWritableDisk
from remote.read.cache_files import HEADER, TEMPORARY_MS_MAX, CacheFiles

BODY = bytes(range(100))


class Ticking(FixedClock):
    """A ms later at every look."""

    def now_ms(self) -> int:
        self.now += 1
        return self.now


def files(folder: Path, bytes_max: int = 1 << 20, clock: FixedClock | None = None, prefix: str = "") -> CacheFiles:
    return CacheFiles(OsWritableDisk(), str(folder / "cache"), ".kept", bytes_max, clock or Ticking(), CountingIds(prefix))


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "cache").iterdir())


def test_what_was_put_is_given_back_also_after_a_restart(tmp_path: Path) -> None:
    cache = files(tmp_path)
    assert cache.get("one") is None
    cache.put("one", BODY)
    cache.put("none", b"")
    assert (cache.get("one"), cache.get("none"), cache.get("other")) == (BODY, b"", None)
    assert (files(tmp_path).get("one"), files(tmp_path).get("none")) == (BODY, b"")


def test_a_name_may_be_put_again(tmp_path: Path) -> None:
    cache = files(tmp_path)
    cache.put("one", BODY)
    cache.put("one", b"later")
    assert cache.get("one") == b"later"


def test_a_file_cut_at_any_byte_is_as_good_as_none_and_goes(tmp_path: Path) -> None:
    cache = files(tmp_path)
    cache.put("one", BODY)
    file = tmp_path / "cache" / "one.kept"
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        assert cache.get("one") is None
        assert not file.exists()
        cache.put("one", BODY)
        assert cache.get("one") == BODY


def test_any_flipped_bit_makes_it_as_good_as_none(tmp_path: Path) -> None:
    cache = files(tmp_path)
    cache.put("one", BODY)
    file = tmp_path / "cache" / "one.kept"
    whole = file.read_bytes()
    for bit in range(8 * len(whole)):
        file.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
        assert cache.get("one") is None
        cache.put("one", BODY)


def test_a_file_under_another_s_name_is_as_good_as_none(tmp_path: Path) -> None:
    cache = files(tmp_path)
    cache.put("one", BODY)
    (tmp_path / "cache" / "one.kept").rename(tmp_path / "cache" / "two.kept")
    assert cache.get("two") is None


def test_no_file_is_written_where_a_name_could_lead_elsewhere(tmp_path: Path) -> None:
    cache = files(tmp_path)
    for name in ("../one", "a/b", "", ".", "x" * 300, "a.b", "\0"):
        cache.put(name, BODY)
        assert cache.get(name) is None
        cache.remove(name)
    assert [*tmp_path.rglob("*.*")] == []


def test_the_folder_never_holds_more_than_the_bound(tmp_path: Path) -> None:
    cache = files(tmp_path, 3_000)
    for number in range(200):
        cache.put(f"n{number}", bytes(number))
        assert size_of(tmp_path) <= 3_000
    assert size_of(tmp_path) >= 2_000
    cache.put("large", bytes(2_900))
    assert cache.get("large") == bytes(2_900)
    assert size_of(tmp_path) <= 3_000


def test_a_body_beyond_the_bound_is_not_kept_and_drives_nothing_out(tmp_path: Path) -> None:
    cache = files(tmp_path, 3_000)
    cache.put("one", BODY)
    cache.put("large", bytes(3_000 - HEADER.size + 1))
    assert (cache.get("large"), cache.get("one")) == (None, BODY)


def test_what_was_longest_not_asked_for_goes_first_also_after_a_restart(tmp_path: Path) -> None:
    clock = Ticking()
    cache = files(tmp_path, 1_100, clock)
    for name in ("a", "b", "c", "d", "e"):
        cache.put(name, bytes(200 - HEADER.size))
    for name in ("b", "a"):
        assert cache.get(name) is not None
    again = files(tmp_path, 1_100, clock, "aa")
    again.put("f", bytes(300))
    assert [name for name in "abcdef" if again.get(name) is not None] == ["a", "b", "e", "f"]


def test_a_smaller_bound_is_kept_to_from_the_next_file_on(tmp_path: Path) -> None:
    clock = Ticking()
    larger = files(tmp_path, 10_000, clock)
    for number in range(9):
        larger.put(f"n{number}", bytes(1_000))
    smaller = files(tmp_path, 3_000, clock, "aa")
    smaller.put("new", bytes(1_000))
    assert size_of(tmp_path) <= 3_000
    assert smaller.get("n8") is not None
    assert smaller.get("n0") is None


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    others = [tmp_path / "cache" / name for name in ("notes.txt", "one.kept.bak", "x.tmp")]
    for other in others:
        other.write_bytes(bytes(5_000))
    cache = files(tmp_path, 1_000)
    for number in range(30):
        cache.put(f"n{number}", bytes(200))
    assert all(other.exists() for other in others)
    assert len([*(tmp_path / "cache").glob("*.kept")]) <= 5


def test_temporary_files_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    clock = FixedClock()
    (tmp_path / "cache").mkdir()
    dead, alive = (tmp_path / "cache" / f"n.kept.{digit * 32}.tmp" for digit in "01")
    for file, age in ((dead, TEMPORARY_MS_MAX + 1), (alive, 1_000)):
        file.write_bytes(bytes(400))
        os.utime(file, ns=((clock.now - age) * 1_000_000,) * 2)
    cache = files(tmp_path, 1_000, clock, "aa")
    for number in range(10):
        cache.put(f"n{number}", bytes(200))
    assert (dead.exists(), alive.exists()) == (False, True)
    assert size_of(tmp_path) <= 1_000


def test_a_folder_that_is_cleared_away_is_made_anew(tmp_path: Path) -> None:
    cache = files(tmp_path)
    cache.put("one", BODY)
    (tmp_path / "cache" / "one.kept").unlink()
    (tmp_path / "cache").rmdir()
    assert cache.get("one") is None
    cache.put("one", BODY)
    assert cache.get("one") == BODY


def test_what_is_removed_is_gone_and_removing_it_again_is_no_error(tmp_path: Path) -> None:
    cache = files(tmp_path)
    cache.put("one", BODY)
    cache.remove("one")
    cache.remove("one")
    cache.remove("never")
    assert cache.get("one") is None
    assert [*(tmp_path / "cache").iterdir()] == []


class Refuses(OsWritableDisk):
    """A disk that is full, or gives nothing back."""

    def __init__(self, *verbs: str) -> None:
        super().__init__()
        self.verbs = verbs

    def write(self, file: str, start: int, data: bytes) -> None:
        if "write" in self.verbs:
            super().write(file, start, data[: len(data) // 2])
            raise Unreadable(f"{file}: no space left")
        super().write(file, start, data)

    def rename(self, path: str, to: str) -> None:
        if "rename" in self.verbs:
            raise Unreadable(path)
        super().rename(path, to)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        if "read" in self.verbs:
            raise Unreadable(file)
        return super().read(file, start, end)

    def names(self, folder: str) -> list[str]:
        if "names" in self.verbs:
            raise Unreadable(folder)
        return super().names(folder)


@pytest.mark.parametrize("verb", ["write", "rename", "read", "names"])
def test_a_disk_that_refuses_is_a_cache_that_has_nothing(tmp_path: Path, verb: str) -> None:
    cache = CacheFiles(Refuses(verb), str(tmp_path / "cache"), ".kept", 1_000, FixedClock(), CountingIds())
    cache.put("one", BODY)
    assert cache.get("one") == (BODY if verb == "names" else None)
    if verb in ("write", "rename"):
        assert [*(tmp_path / "cache").iterdir()] == []


def test_after_a_power_failure_a_body_is_what_was_put_or_nothing() -> None:
    for seed in range(200):
        disk = SimulatedDisk()
        cache = CacheFiles(disk, "/cache", ".kept", 50_000, Ticking(), CountingIds())
        for number in range(12):
            cache.put(f"n{number}", bytes([number]) * 9_000)
        after = disk.after_power_failure(0.5, seed)
        again = CacheFiles(after, "/cache", ".kept", 50_000, Ticking(), CountingIds("aa"))
        for number in range(12):
            assert again.get(f"n{number}") in (None, bytes([number]) * 9_000)
        again.put("more", BODY)
        assert again.get("more") == BODY


def test_threads_that_put_and_get_the_same_names_see_whole_bodies_only(tmp_path: Path) -> None:
    cache = files(tmp_path, 20_000)

    def work(seed: int) -> None:
        for step in range(150):
            number = (seed * 7 + step * step) % 12
            cache.put(f"n{number}", bytes([number]) * 3_000)
            assert cache.get(f"n{(number + seed) % 12}") in (None, bytes([(number + seed) % 12]) * 3_000)
            if step % 20 == 0:
                cache.remove(f"n{number}")

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, seed) for seed in range(8)]:
            done.result()
    cache.put("last", BODY)
    assert size_of(tmp_path) <= 20_000 + 8 * 3_008


def _work_beside_others(folder: str, seed: int) -> None:
    cache = files(Path(folder), 40_000, prefix=f"{seed:02x}")
    for step in range(300):
        number = (seed + step * step) % 30
        cache.put(f"n{number}", bytes([number]) * 2_000)
        assert cache.get(f"n{(number * 3) % 30}") in (None, bytes([(number * 3) % 30]) * 2_000)


@pytest.mark.slow
def test_processes_share_a_folder_and_pass_the_bound_by_an_eighth_each_at_most(tmp_path: Path) -> None:
    context = get_context("spawn")
    workers = [context.Process(target=_work_beside_others, args=(str(tmp_path), seed)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert size_of(tmp_path) <= 40_000 * (1 + 2 / 8) + 3 * 2_008
    assert any(files(tmp_path, 40_000).get(f"n{number}") for number in range(30))
