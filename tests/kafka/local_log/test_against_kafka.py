"""Our engine beside Kafka's own, on the same bytes: the same offsets, producers and files, byte for byte."""

import random  # noqa: TID251  # seeded
import shutil
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import golden_logs
import pytest
import real_kafka
from damage import damage
from kafka_log import NOW, Answer, KafkaLog, files, kafka_log

from local_log.engine.config import read_config
from local_log.engine.errors import Refused
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import LogError
from local_log.os_disk import OsWritableDisk
from tiering.log_tools import partition as log_tools

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="Kafka's own classes are brought by Maven, which is not here"),
]

SETTINGS = {"segment.bytes": "1048576"}
DAMAGED = 160


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaLog]:
    with kafka_log() as kafka:
        yield kafka


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden_logs.broker_logs(tmp_path_factory.mktemp("golden"))


def ours(folder: Path, start: int = 0, point: int = 0, *, clean: bool = False, settings: dict[str, str] = SETTINGS) -> UnifiedLog:
    return open_log(
        OsWritableDisk(),
        str(folder),
        read_config(settings),
        lambda: NOW,
        lambda: 0.0,
        log_start_offset=start,
        recovery_point=point,
        clean=clean,
    )


def ours_loaded(folder: Path, start: int, point: int, *, clean: bool) -> Answer:
    try:
        log = ours(folder, start, point, clean=clean)
    except LogError as e:
        return {"error": str(e)}
    state = log_tools.state(log)
    log.close()
    return state


def kafkas_loaded(kafka: KafkaLog, folder: Path, start: int, point: int, *, clean: bool) -> Answer:
    words = [f"{name}={value}" for name, value in SETTINGS.items()]
    opened = kafka.ask("open", folder, start, point, "clean" if clean else "unclean", *words)
    if "error" in opened:
        return opened
    state = replicated_state(kafka)
    kafka.ask("close")
    return state


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_folder_is_brought_in_order_as_kafka_brings_it(kafka: KafkaLog, logs: Path, tmp_path: Path, seed: int) -> None:
    for i in range(DAMAGED // 8):
        r = random.Random(f"{seed}/{i}")
        source = logs / r.choice(golden_logs.partitions())
        theirs_in, ours_in = tmp_path / f"k{i}" / source.name, tmp_path / f"p{i}" / source.name
        shutil.copytree(source, theirs_in)
        acts = damage(theirs_in, r)
        shutil.copytree(theirs_in, ours_in)
        bases = sorted(int(f.stem) for f in source.glob("*.log"))
        start = r.choice([0, 0, bases[0], r.choice(bases), r.randrange(bases[-1] + 5000)])
        point = r.choice([0, 0, max(start, r.choice(bases))])
        clean = r.random() < 0.3
        what = f"{seed}/{i} {source.name} start={start} point={point} clean={clean}: {acts}"
        theirs = kafkas_loaded(kafka, theirs_in, start, point, clean=clean)
        found = ours_loaded(ours_in, start, point, clean=clean)
        if "error" in theirs:
            assert "error" in found, f"{what}\n{theirs}"
        else:
            assert found == theirs, what
            assert files(ours_in) == files(theirs_in), what
        shutil.rmtree(theirs_in.parent)  # thousands of preallocated indexes fill a disk
        shutil.rmtree(ours_in.parent)


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "00000000000000002100.snapshot"])
def test_a_file_that_was_cut_is_to_us_what_it_is_to_kafka(kafka: KafkaLog, logs: Path, tmp_path: Path, name: str) -> None:
    source = logs / "g-epochs-0"
    whole = (source / name).read_bytes()
    for size in range(len(whole)):
        theirs_in, ours_in = tmp_path / "k" / source.name, tmp_path / "p" / source.name
        for folder in (theirs_in, ours_in):
            shutil.copytree(source, folder)
            (folder / name).write_bytes(whole[:size])
        theirs, found = kafkas_loaded(kafka, theirs_in, 0, 0, clean=True), ours_loaded(ours_in, 0, 0, clean=True)
        if "error" in theirs:
            assert "error" in found, f"{size}: {theirs}"
        else:
            assert found == theirs, size
            assert files(ours_in) == files(theirs_in), size
        shutil.rmtree(tmp_path / "k")
        shutil.rmtree(tmp_path / "p")


@pytest.mark.parametrize("partition", golden_logs.partitions())
def test_batches_appended_as_a_follower_give_the_files_that_kafka_writes(
    kafka: KafkaLog, logs: Path, tmp_path: Path, partition: str
) -> None:
    theirs_in, ours_in = tmp_path / "k" / partition, tmp_path / "p" / partition
    settings = {"segment.bytes": "2500000"} if partition == "g-big-0" else SETTINGS
    words = [f"{name}={value}" for name, value in settings.items()]
    assert kafka.ask("open", theirs_in, 0, 0, "clean", *words) == {}
    assert "error" not in kafka.ask("replay", logs / partition)
    theirs = replicated_state(kafka)
    kafka.ask("close")
    log = ours(ours_in, clean=True, settings=settings)
    log_tools.append_all(str(logs / partition), log, None)
    assert log_tools.state(log) == theirs
    log.close()
    assert files(ours_in) == files(theirs_in)


LEADERS = [
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"compression.type": "lz4"},
    {"compression.type": "gzip", "internal.segment.bytes": "150000", "index.interval.bytes": "1"},
    {"compression.type": "uncompressed", "max.message.bytes": "20000", "segment.index.bytes": "120"},
]


@pytest.mark.parametrize("settings", LEADERS, ids=str)
@pytest.mark.parametrize("partition", [p for p in golden_logs.partitions() if p != "g-big-0"])
def test_batches_appended_as_a_leader_give_the_answers_and_files_of_kafka(
    kafka: KafkaLog, logs: Path, tmp_path: Path, partition: str, settings: dict[str, str]
) -> None:
    theirs_in, ours_in = tmp_path / "k" / partition, tmp_path / "p" / partition
    settings = SETTINGS | settings
    assert kafka.ask("open", theirs_in, 0, 0, "clean", *(f"{name}={value}" for name, value in settings.items())) == {}
    log = ours(ours_in, clean=True, settings=settings)
    for _, data in golden_logs.segments(logs, partition):
        for batch in memory_batches(data):
            records = bytes(8) + data[batch.position + 8 : batch.position + batch.size]
            origin = Origin.COORDINATOR if batch.is_control else Origin.CLIENT
            theirs = kafka.ask("leader", 5, origin.name, b64encode(records).decode())
            if "error" in theirs:
                with pytest.raises(Refused):
                    log.append_as_leader(records, 5, origin)
                continue
            info = log.append_as_leader(records, 5, origin)
            found = (info.first_offset, info.last_offset, info.max_timestamp, info.log_append_time)
            assert found == tuple(theirs.values())
    assert log_tools.state(log) == replicated_state(kafka)
    log.close()
    kafka.ask("close")
    assert files(ours_in) == files(theirs_in)


def replicated_state(kafka: KafkaLog) -> Answer:
    """The state once everything is replicated."""
    kafka.ask("watermark", (1 << 63) - 1)
    return kafka.ask("state")
