"""The short way of an append and the long one: the same answers, state and files."""

import random  # noqa: TID251  # seeded
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import GZIP, TRANSACTIONAL, batch, record
from kafka_log import files
from small_logs import marker

from local_log.engine import unified_log
from local_log.engine.append.leader_fast_path import prepare_one
from local_log.engine.config import read_config
from local_log.engine.producers.state import Origin
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
    bit = TRANSACTIONAL if producer >= 0 and r.random() < 0.5 else 0
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
        attributes=codec | bit,
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


RULES = (
    {},
    {"compression.type": "uncompressed"},
    {"compression.type": "gzip"},
    {"cleanup.policy": "compact"},
    {"message.timestamp.type": "LogAppendTime"},
    {"max.message.bytes": "200"},
)


def is_open(log: UnifiedLog, producer: int) -> bool:
    """Whether the producer has a transaction open."""
    known = log.producers.producers.get(producer)
    return known is not None and known.txn_first_offset is not None


def sent_batch(r: random.Random, log: UnifiedLog) -> bytes:
    """A client's batch, mostly plain; some break a rule, come again, or say in their header what is not so."""
    count = r.choice([1, 1, 2, 5])
    producer = r.choice([-1, -1, 7, 8])
    known = log.producers.producers.get(producer)
    sequence = (0 if known is None else known.last_sequence + 1) + r.choice([0] * 9 + [1, -count]) if producer >= 0 else -1
    time = NOW - r.randrange(10_000) + r.choice([0] * 20 + [4_000_000, -1_000_000_000])
    codec = r.choice([0] * 12 + [GZIP, GZIP, 5, 8, 32, 64, 128])
    bit = TRANSACTIONAL if r.random() < (0.9 if is_open(log, producer) else 0.1) else 0
    made = batch(
        *(record(i + (r.random() < 0.02), key=r.choice([None, b"k"]), value=r.randbytes(r.randrange(60))) for i in range(count)),
        base_offset=int(r.random() < 0.03),
        producer_id=producer,
        producer_epoch=int(r.random() < 0.03) if producer >= 0 else -1,
        base_sequence=max(-1, sequence),
        epoch=r.choice([-1, 0, 5]),
        base_timestamp=time,
        max_timestamp=time + r.choice([0] * 20 + [1]),
        attributes=codec | bit,
        section=b"whatever" if codec == 5 else None,
        count=count + (r.random() < 0.03),
    )
    return made if r.random() > 0.03 else made[:-1] + bytes([made[-1] ^ 1])


@pytest.mark.parametrize("seed", range(24))
def test_a_leader_s_both_ways_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    r = random.Random(seed)
    config = read_config(
        {"internal.segment.bytes": "3000", "segment.index.bytes": "1200", "index.interval.bytes": "300"} | RULES[seed % 6]
    )
    short, long = (
        open_log(OsWritableDisk(), str(tmp_path / name), config, lambda: NOW, lambda: 0.0, clean=True)
        for name in ("short-0", "long-0")
    )
    if seed % 2:
        short.become_only_replica()
        long.become_only_replica()
    for step in range(60):
        one, epoch, origin = sent_batch(r, short), step // 20, Origin.CLIENT
        producer = r.choice([7, 8])
        if is_open(short, producer) and r.random() < 0.2:
            one, origin = marker(0, producer, commit=r.random() < 0.5), Origin.COORDINATOR
        if r.random() < 0.1:
            assert short.update_high_watermark(step) == long.update_high_watermark(step)
            start = min(step // 2, short.high_watermark)
            assert short.maybe_increment_log_start_offset(start) == long.maybe_increment_log_start_offset(start)
        answers = []
        for log in (short, long):
            with monkeypatch.context() as patch:
                if log is long:
                    patch.setattr(unified_log, "prepare_one", lambda *_: None)
                try:
                    answers.append(log.append_as_leader(one, epoch, origin))
                except LogError as e:
                    answers.append(type(e))
        assert answers[0] == answers[1]
        assert log_tools.describe(short) == log_tools.describe(long)
        assert short.offsets == long.offsets
        assert (short.producers.ongoing, short.producers.producers) == (long.producers.ongoing, long.producers.producers)
    short.close()
    long.close()
    assert files(tmp_path / "short-0") == files(tmp_path / "long-0")


@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_client_s_plain_batch_takes_the_short_way(tmp_path: Path, codec: int) -> None:
    log = opened(tmp_path / "t-0", INT64_MAX)
    taken = []
    for sequence in range(5):
        taken.append(prepare_one(sent(sequence, codec), 0, log.log_end_offset, NOW, SETTINGS, log.producers) is not None)
        log.append_as_leader(sent(sequence, codec), 0)
    assert taken == [False, True, True, True, True]


def sent(sequence: int, codec: int) -> bytes:
    return batch(
        record(0, value=b"v"),
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        base_timestamp=NOW,
        max_timestamp=NOW,
        attributes=codec,
    )
