"""What crashes, bad disks and clumsy people do to a partition's folder, each act drawn from a seeded generator."""

import random  # noqa: TID251  # seeded
import shutil
from collections.abc import Callable
from pathlib import Path

INDEX_BYTES = 10 << 20

Act = Callable[[Path, random.Random], None]


def flip(file: Path, position: int) -> None:
    """Changes the lowest bit of one byte."""
    data = bytearray(file.read_bytes())
    data[position] ^= 1
    file.write_bytes(data)


def _pick(folder: Path, pattern: str, r: random.Random) -> Path | None:
    found = sorted(folder.glob(pattern))
    return r.choice(found) if found else None


def _last(folder: Path) -> Path:
    return sorted(folder.glob("*.log"))[-1]


def _cut(file: Path | None, by: int) -> None:
    if file is not None:
        data = file.read_bytes()
        file.write_bytes(data[: max(0, len(data) - by)])


def _flip(file: Path | None, r: random.Random) -> None:
    if file is not None and file.stat().st_size:
        data = bytearray(file.read_bytes())
        data[r.randrange(len(data))] ^= 1 << r.randrange(8)
        file.write_bytes(data)


def _add(file: Path, data: bytes) -> None:
    file.write_bytes(file.read_bytes() + data)


def _drop(folder: Path, pattern: str, r: random.Random) -> None:
    file = _pick(folder, pattern, r)
    if file is not None:
        file.unlink()


def _leave(suffix: str) -> Act:
    def act(folder: Path, r: random.Random) -> None:
        log = _pick(folder, "*.log", r)
        assert log is not None
        shutil.copy(log, f"{log}{suffix}")

    return act


def _preallocate(folder: Path, r: random.Random) -> None:
    for suffix, entry in ((".index", 8), (".timeindex", 12)):
        file = _last(folder).with_suffix(suffix)
        if file.exists():
            _add(file, bytes(INDEX_BYTES // entry * entry - file.stat().st_size))


ACTS: dict[str, Act] = {
    "the last log loses its end": lambda f, r: _cut(_last(f), r.randrange(1, max(2, _last(f).stat().st_size))),
    "the last log loses a few bytes": lambda f, r: _cut(_last(f), r.randrange(1, 200)),
    "a bit of the last log flips": lambda f, r: _flip(_last(f), r),
    "a bit of some log flips": lambda f, r: _flip(_pick(f, "*.log", r), r),
    "the first bytes of a log change": lambda f, r: _flip_header(_pick(f, "*.log", r), r),
    "the last log ends in zeros": lambda f, r: _add(_last(f), bytes(r.randrange(1, 5000))),
    "the last log ends in garbage": lambda f, r: _add(_last(f), r.randbytes(r.randrange(1, 3000))),
    "an index is gone": lambda f, r: _drop(f, "*.index", r),
    "a time index is gone": lambda f, r: _drop(f, "*.timeindex", r),
    "a transaction index is gone": lambda f, r: _drop(f, "*.txnindex", r),
    "a bit of an index flips": lambda f, r: _flip(_pick(f, "*.index", r), r),
    "a bit of a time index flips": lambda f, r: _flip(_pick(f, "*.timeindex", r), r),
    "a bit of a transaction index flips": lambda f, r: _flip(_pick(f, "*.txnindex", r), r),
    "an index loses its end": lambda f, r: _cut(_pick(f, "*.*index", r), r.randrange(1, 30)),
    "a snapshot is gone": lambda f, r: _drop(f, "*.snapshot", r),
    "all snapshots are gone": lambda f, _: [s.unlink() for s in f.glob("*.snapshot")] and None,
    "a bit of a snapshot flips": lambda f, r: _flip(_pick(f, "*.snapshot", r), r),
    "a snapshot loses its end": lambda f, r: _cut(_pick(f, "*.snapshot", r), r.randrange(1, 20)),
    "a cleaning did not end": _leave(".cleaned"),
    "a swap did not end": _leave(".swap"),
    "a deletion did not end": _leave(".deleted"),
    "an index has no log": lambda f, r: _add_file(f / f"{r.randrange(10**6, 10**7):020d}.index", bytes(8)),
    "the leader epochs are gone": lambda f, _: (f / "leader-epoch-checkpoint").unlink(missing_ok=True),
    "the leader epochs lose their end": lambda f, r: _cut(_pick(f, "leader-epoch-checkpoint", r), r.randrange(1, 9)),
    "the last indexes are preallocated": _preallocate,
    "a log in the middle is gone": lambda f, r: _drop_middle(f, r),
    "a log in the middle is empty": lambda f, r: _cut(_pick(f, "*.log", r), 1 << 30),
}


def _flip_header(file: Path | None, r: random.Random) -> None:
    """In the 61 bytes of the first batch: offsets, epoch and magic are under no checksum."""
    if file is not None and (data := bytearray(file.read_bytes())):
        data[r.randrange(min(61, len(data)))] ^= 1 << r.randrange(8)
        file.write_bytes(data)


def _add_file(file: Path, data: bytes) -> None:
    file.write_bytes(data)


def _drop_middle(folder: Path, r: random.Random) -> None:
    logs = sorted(folder.glob("*.log"))
    if len(logs) > 1:
        r.choice(logs[:-1]).unlink()


def damage(folder: Path, r: random.Random) -> str:
    """One to three acts; what they were."""
    names = [r.choice(sorted(ACTS)) for _ in range(r.choice([1, 1, 2, 3]))]
    for name in names:
        ACTS[name](folder, r)
    return ", ".join(names)
