"""Retention beside Kafka's own: the same logs, settings and times leave the same segments, offsets and files."""

import random  # noqa: TID251  # seeded
import shutil
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import real_kafka
from hand_made import batch, record
from kafka_log import NOW, KafkaLog, files, kafka_log

from local_log.engine.config import LogConfig, read_config
from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import Invalid
from local_log.os_disk import OsWritableDisk
from tiering.log_tools.partition import describe

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="Kafka's own classes are brought by Maven, which is not here"),
]

BYTES = (0, 1, 300, 1000, 3000, -1)
TIMES = (0, 50, 500, 5000, -1)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaLog]:
    with kafka_log() as kafka:
        yield kafka


def settings(r: random.Random) -> dict[str, str]:
    """Of a log with small segments; every other one is tiered."""
    drawn = {
        "internal.segment.bytes": str(r.choice((400, 500, 1000))),
        "segment.index.bytes": "240",
        "file.delete.delay.ms": "0",
        "retention.bytes": str(r.choice(BYTES)),
        "retention.ms": str(r.choice(TIMES)),
        "cleanup.policy": r.choice(("delete", "delete", "delete", "compact", "compact,delete", "")),
    }
    if r.random() < 0.6:
        drawn |= {
            "remote.storage.enable": "true",
            "local.retention.bytes": str(r.choice((*BYTES, -2))),
            "local.retention.ms": str(r.choice((*TIMES, -2))),
            "remote.log.copy.disable": r.choice(("false", "false", "true")),
        }
    return drawn


def drawn_until_sound(r: random.Random) -> tuple[dict[str, str], LogConfig]:
    """Settings that a broker takes."""
    while True:
        words = settings(r)
        with suppress(Invalid):
            return words, read_config(words)


def opened(folder: Path, config: LogConfig) -> UnifiedLog:
    return open_log(OsWritableDisk(), str(folder), config, lambda: NOW, lambda: 0.0, clean=True)


@pytest.mark.parametrize("seed", range(6))
def test_what_kafka_keeps_we_keep_and_no_more(kafka: KafkaLog, tmp_path: Path, seed: int) -> None:
    for i in range(15):
        r = random.Random(f"retention {seed}/{i}")
        theirs_in, ours_in = tmp_path / f"k{i}" / "t-0", tmp_path / f"p{i}" / "t-0"
        words, config = drawn_until_sound(r)
        assert kafka.ask("open", theirs_in, 0, 0, "clean", *(f"{name}={value}" for name, value in words.items())) == {}
        log = opened(ours_in, config)
        did = [str(words)]
        for _ in range(r.randrange(5, 40)):
            did.append(step(r, kafka, log, did))
            theirs = kafka.ask("state")
            assert describe(log) == theirs, "\n".join(did)
        kafka.ask("close")
        log.close()
        assert files(ours_in) == files(theirs_in), "\n".join(did)
        shutil.rmtree(theirs_in.parent)
        shutil.rmtree(ours_in.parent)


def step(r: random.Random, kafka: KafkaLog, log: UnifiedLog, did: list[str]) -> str:
    act = r.choice(
        ("append", "append", "append", "append", "watermark", "watermark", "retain", "retain", "delete", "archived", "roll")
    )
    if act == "append":
        time = NOW - r.choice((0, 40, 60, 400, 600, 6000, -100))
        made = batch(
            *(record(number, value=bytes(r.randrange(90))) for number in range(r.randrange(1, 4))),
            base_offset=log.log_end_offset,
            base_timestamp=time,
            max_timestamp=time,
        )
        theirs = kafka.ask("follower", 0, b64encode(made).decode())
        assert "error" not in theirs
        log.append_as_follower(made, 0)
        return f"append at {time - NOW}"
    offset = r.randrange(log.log_end_offset + 1)
    if act == "watermark":
        offset = r.choice((offset, log.log_end_offset))
        kafka.ask("watermark", offset)
        log.update_high_watermark(offset)
    elif act == "delete":
        offset = min(offset, log.high_watermark)
        kafka.ask("delete", offset)
        log.maybe_increment_log_start_offset(offset)
    elif act == "archived":
        kafka.ask("archived", offset)
        log.highest_offset_in_archive = max(offset, log.highest_offset_in_archive)
    elif act == "roll":
        kafka.ask("roll")
        log.roll()
    else:
        theirs = kafka.ask("retain")
        ours = {"deleted": delete_old_segments(log, NOW), "local_log_start_offset": log.local_log_start_offset}
        log.folder.delete_due()
        assert ours == theirs, "\n".join(did)
    return f"{act} {offset}"
