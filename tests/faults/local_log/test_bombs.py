"""Batches of a few MB that inflate to gigabytes, or say so: whoever meets one takes little memory, and says what it is."""

import json
import shutil
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import snappy
from hand_made import ABORT_KEY, CONTROL, GZIP, LZ4, SNAPPY, TRANSACTIONAL, ZSTD, batch, record, wrapper

from local_log.formats.record import Codec

MIB = 1 << 20
INFLATED_MAX, MORE_MAX = 4 * MIB, 256 * MIB
BOMB = 2048 * MIB
CLAIM = 1 << 40
"""What a header promises."""

Outcome = dict[str, Any]


def gzip_bomb() -> bytes:
    """One member."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first, again = (deflate.compress(bytes(MIB)) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + first + again * (BOMB // MIB - 1) + deflate.flush()


def gzip_members() -> bytes:
    """Many members, each of half of what a batch may inflate to."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    return (deflate.compress(bytes(INFLATED_MAX // 2)) + deflate.flush()) * 256


def lz4_bomb(stated: int = 0) -> bytes:
    """Blocks of 4 MiB, with the content's size in the header if stated."""
    context = lz4.frame.create_compression_context()
    head = lz4.frame.compress_begin(context, source_size=stated, block_size=7, block_linked=False)
    data = bytes(4 * MIB)
    block = lz4.frame.compress(data, block_size=7, block_linked=False, store_size=False)[7:-4]
    return bytes(head) + block * (BOMB // 2 // len(data)) + bytes(4)


def zstd_bomb(stated: int | None = None) -> bytes:
    """Runs of one byte, 128 KiB each."""
    run = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (0 << 3 | 1).to_bytes(3, "little")
    head = struct.pack("<IBB", 0xFD2FB528, 0, 0x40) if stated is None else struct.pack("<IBBQ", 0xFD2FB528, 0xC0, 0x40, stated)
    return head + run * (BOMB // (128 << 10)) + last


def zstd_frames() -> bytes:
    """Many frames, each of half of what a batch may inflate to."""
    run = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    one = struct.pack("<IBB", 0xFD2FB528, 0, 0x40) + run * (INFLATED_MAX // (256 << 10)) + (1).to_bytes(3, "little")
    return one * 256


def xerial_bomb() -> bytes:
    """Blocks of half of what a batch may inflate to."""
    block = bytes(snappy.compress(bytes(INFLATED_MAX // 2)))
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + (struct.pack(">i", len(block)) + block) * 6


SNAPPY_CLAIM = b"\xff\xff\xff\xff\x0f\0a"

BOMBS: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip": (GZIP, gzip_bomb),
    "gzip of many members": (GZIP, gzip_members),
    "lz4": (LZ4, lz4_bomb),
    "lz4 that states a size": (LZ4, lambda: lz4_bomb(CLAIM)),
    "zstd": (ZSTD, zstd_bomb),
    "zstd of many frames": (ZSTD, zstd_frames),
    "zstd that states a size": (ZSTD, lambda: zstd_bomb(CLAIM)),
    "raw snappy that claims a size": (SNAPPY, lambda: SNAPPY_CLAIM),
    "xerial snappy": (SNAPPY, xerial_bomb),
    "xerial snappy that claims a size": (
        SNAPPY,
        lambda: xerial_bomb()[:16] + struct.pack(">i", len(SNAPPY_CLAIM)) + SNAPPY_CLAIM,
    ),
}


def control(codec: int, section: bytes) -> bytes:
    """A marker, as nobody writes one."""
    attributes = codec | TRANSACTIONAL | CONTROL
    return batch(record(key=ABORT_KEY), attributes=attributes, section=section, producer_id=1, producer_epoch=0)


KINDS: dict[str, Callable[[int, bytes], bytes]] = {
    "batch": lambda codec, section: batch(record(), attributes=codec, section=section),
    "message of magic 0": lambda codec, section: wrapper(0, codec, section=section),
    "message of magic 1": lambda codec, section: wrapper(1, codec, section=section),
    "marker": control,
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, str], dict[str, Outcome]]]:
    """What came of every bomb, whatever was done with it, by its kind and its frame."""
    folder = tmp_path_factory.mktemp("bombs")
    frames = {name: (codec, make()) for name, (codec, make) in BOMBS.items()}
    cases: dict[str, tuple[str, str]] = {}
    for kind, made in KINDS.items():
        for name, (codec, frame) in frames.items():
            case = folder / str(len(cases)) / "t-0"
            case.mkdir(parents=True)
            (case / "00000000000000000000.log").write_bytes(made(codec, frame))
            cases[str(case)] = kind, name
    worker = Path(__file__).parents[2] / "support" / "in_little_memory.py"
    command = [sys.executable, str(worker), str(INFLATED_MAX), str(MORE_MAX), *cases]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[tuple[str, str], dict[str, Outcome]] = {}
    for row in map(json.loads, done.stdout.splitlines()):
        found.setdefault(cases[row["folder"]], {})[row["did"]] = row
    yield found
    shutil.rmtree(folder)


CORRUPT, REFUSED, CORRUPTION = "Corrupt", "Refused", 6
LED = {f"led, {codec}": REFUSED for codec in ("producer", "zstd", "uncompressed")}
OF_A_BATCH: dict[str, object] = {
    "read": CORRUPT,
    "found by time": CORRUPT,
    "dump --batches": 0,
    "dump --records": CORRUPTION,
    **LED,
    "followed": 1,
    "recover": 0,
    "recovered": 1,
    "found by time by the engine": CORRUPT,
}
# What offset a message of magic 0 or 1 starts with, only what it holds says: Kafka does not open such a log either.
OF_A_MESSAGE = OF_A_BATCH | {"dump --batches": CORRUPTION, "recover": CORRUPTION, "recovered": CORRUPT}
OF_A_MARKER = OF_A_BATCH | {"followed": REFUSED, "recover": CORRUPTION, "recovered": CORRUPT}
EXPECTED = {"batch": OF_A_BATCH, "marker": OF_A_MARKER}


@pytest.mark.parametrize("frame", BOMBS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bomb_is_refused_by_whoever_inflates_it_and_takes_no_memory(
    outcomes: dict[tuple[str, str], dict[str, Outcome]], kind: str, frame: str
) -> None:
    found = outcomes[kind, frame]
    codec, _ = BOMBS[frame]
    assert {did: short(outcome) for did, outcome in found.items()} == EXPECTED.get(kind, OF_A_MESSAGE)
    for did, outcome in found.items():
        if short(outcome) in (CORRUPT, REFUSED, CORRUPTION):
            problem = "zstd, which came with magic 2" if kind.startswith("message") and codec is ZSTD else "inflates to more than"
            assert problem in outcome["text"], did
            if did != "followed" and not did.startswith("led"):
                assert "00000000000000000000.log at byte 0: " in outcome["text"], did


def short(outcome: Outcome) -> object:
    """The outcome in a word: an exit code, what was answered, or the kind of error."""
    errors = outcome.get("error", [])
    if errors:
        return next((name for name in (CORRUPT, REFUSED) if name in errors), errors[0])
    return outcome["exit"] if "exit" in outcome else outcome["answer"]
