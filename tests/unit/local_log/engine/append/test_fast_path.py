"""The short way of an append and the long one: the same answers, state and files."""

import random  # noqa: TID251  # seeded
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import GZIP, batch, record
from kafka_log import files

from local_log.engine import unified_log
from local_log.engine.config import read_config
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import LogError
from local_log.formats.primitives import INT64_MAX
from local_log.os_disk import OsWritableDisk
from tiering.log_tools import partition as log_tools

SETTINGS = read_config({"internal.segment.bytes": "3000", "segment.index.bytes": "1200", "index.interval.bytes": "300"})
NOW = 1_800_000_000_000


def opened(folder: Path, flush_messages: int) -> UnifiedLog:
    settings = replace(SETTINGS, flush_messages=flush_messages)
    return open_log(OsWritableDisk(), str(folder), settings, lambda: NOW, lambda: 0.0, clean=True)


def some_batch(r: random.Random, offset: int, sequences: dict[int, int]) -> bytes:
    """Mostly plain; now and then with a gap, an older offset, another codec, one that Kafka lacks, or a flipped bit."""
    count = r.choice([1, 1, 2, 5])
    producer = r.choice([-1, -1, 7, 8])
    sequence = sequences.get(producer, 0) if producer >= 0 else -1
    sequences[producer] = sequence + count
    codec = r.choice([0, 0, 0, 0, GZIP, 5])
    time = NOW - r.randrange(10_000)
    made = batch(
        *(record(i, value=r.randbytes(r.randrange(120))) for i in range(count)),
        base_offset=offset + r.choice([0, 0, 0, 0, 3, -1]),
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence,
        epoch=r.choice([0, 0, 0, 0, 1]),
        base_timestamp=time,
        max_timestamp=time,
        attributes=codec,
        section=b"whatever" if codec == 5 else None,
    )
    if r.random() < 0.05:
        damaged = bytearray(made)
        damaged[-1] ^= 1
        return bytes(damaged)
    return made


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.slow
def test_both_ways_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    r = random.Random(seed)
    flush_messages = r.choice([1, 7, 50, INT64_MAX])
    short, long = opened(tmp_path / "short-0", flush_messages), opened(tmp_path / "long-0", flush_messages)
    sequences: dict[int, int] = {}
    taken = 0
    for _ in range(120):
        if r.random() < 0.03:
            target = r.randrange(short.log_end_offset + 1)
            assert short.truncate_to(target) == long.truncate_to(target)
        one = some_batch(r, short.log_end_offset, sequences)
        answers = []
        for log in (short, long):
            with monkeypatch.context() as patch:
                if log is long:
                    patch.setattr(unified_log, "append_one", lambda *_: None)
                try:
                    answers.append(log.append_as_follower(one, 1))
                except LogError as e:
                    answers.append(type(e))
        assert answers[0] == answers[1]
        taken += not isinstance(answers[0], type)
        assert log_tools.describe(short) == log_tools.describe(long)
        assert short.recovery_point == long.recovery_point
    assert taken > 20
    short.close()
    long.close()
    assert files(tmp_path / "short-0") == files(tmp_path / "long-0")
