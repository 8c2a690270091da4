"""What a broker wrote, through the whole archive: on every store and in every encoding what comes out is what Kafka has."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from golden_logs import live, partitions
from key_files import ENCODE, write_keys
from logs_to_archive import due

from local_log.formats.list_offsets import EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST, LATEST_TIERED, MAX_TIMESTAMP
from tiering.log_tools.dump import payload
from tiering.read.tiered_log import Isolation, TieredLog
from tiering.wiring import open_reading, open_tiers

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]
Records = Callable[[str], list[Row]]

ON_SERVERS = ("g-codec-none-0", "g-epochs-0", "g-trimmed-0", "g-txn-0")
FIELDS = ("offset", "timestamp", "key", "value", "headers")
NOTHING = [-1, -1, -1]


@dataclass(frozen=True)
class Ways:
    """The ways into an archive and out of it, and what must come out: `logs` and what the running broker answered of them.

    `shed` is what is left of `logs` when archived segments have gone.
    """

    run: Run
    rows: Rows
    records: Records
    logs: Path
    shed: Path
    base: Path

    def check_all(self, url: str, encoding: str, names: tuple[str, ...], *, every: int = 1) -> None:
        """Offloads these partitions, and holds all that can be asked of the archive against the logs.

        Of the times whose offsets are known it asks one of `every`.
        """
        keys = write_keys(self.base / "keys", "k1", k1=bytes(range(32))) if "aes" in encoding else None
        given = ("--archive", url, *(("--keys", keys) if keys else ()))
        topics = [word for name in names for word in ("--topic", name.removesuffix("-0"))]
        copied = self.rows(
            "offload", "--log-dir", self.logs, *given, *topics, *ENCODE.get(encoding, ()), "--chunk-bytes", 1 << 16
        )
        assert Counter(row["topic"] for row in copied if row["action"] == "copied") == {
            name.removesuffix("-0"): len(due(self.logs, name)) for name in names if due(self.logs, name)
        }
        archived = tuple(name for name in names if due(self.logs, name))
        alone = open_tiers(None, url, open_reading(None, 0, None, keys and str(keys)))
        both = open_tiers(str(self.shed), url, open_reading(None, 0, None, keys and str(keys)))
        for name in archived:
            topic, end = name.removesuffix("-0"), due(self.logs, name)[-1][1]
            log = alone.partition(topic, 0)
            self.check_records(log, given, name, end)
            check_offsets_of_the_archive(log, name, end, every)
            check_offsets_of_both_tiers(both.partition(topic, 0), name, end, every)
        self.check_restored(given, archived)
        self.check_scrub(url, given, copied, is_encrypted=keys is not None)

    def check_records(self, log: TieredLog, given: tuple[object, ...], name: str, end: int) -> None:
        start, decided = live(name)["earliest"][0], set(live(name)["read_committed_offsets"])
        expected = [
            {field: record[field] for field in FIELDS}
            for record in self.records(name)
            if not record["control"] and start <= record["offset"] < end
        ]
        question = ("--topic", name.removesuffix("-0"), "--partition", 0, "--offset", start)
        fetched = self.rows("fetch", "--encoding", "base64", *given, *question)
        assert [{field: row[field] for field in FIELDS} for row in fetched] == expected
        committed = (record for batch in log.read(start, isolation=Isolation.read_committed) for record in batch.to_pylist())
        assert [{"offset": record["offset"], "timestamp": record["timestamp"], **payload(record)} for record in committed] == [
            record for record in expected if record["offset"] in decided
        ]

    def check_restored(self, given: tuple[object, ...], names: tuple[str, ...]) -> None:
        target = self.base / "restored"
        done = self.rows("restore", *given, "--to", target)
        assert {row["action"] for row in done} == {"whole", "complete"}
        assert {file.name for file in target.iterdir() if file.is_dir()} == {*names}
        for name in names:
            bases, ends = ({f"{offset:020d}" for offset in offsets} for offsets in zip(*due(self.logs, name), strict=True))
            snapshots = {f"{end}.snapshot" for end in ends}  # those between two segments are of no use to either
            expected = {
                file.name: file.read_bytes()
                for file in (self.logs / name).iterdir()
                if file.name in snapshots | {"partition.metadata"} or (file.stem in bases and file.suffix != ".snapshot")
            }
            found = {file.name: file.read_bytes() for file in (target / name).iterdir()}
            assert {file: found.get(file) for file in expected} == expected
            active = {f"{max(ends)}{suffix}" for suffix in (".log", ".index", ".timeindex")}
            assert found.keys() == expected.keys() | active | {"leader-epoch-checkpoint"}

    def check_scrub(self, url: str, given: tuple[object, ...], copied: list[Row], *, is_encrypted: bool) -> None:
        assert self.rows("scrub", *given, "--deep") == []
        blind = self.run("scrub", "--archive", url, "--deep", "--output", "jsonl")
        segments = sum(row["action"] == "copied" for row in copied)
        assert blind.exit_code == (3 if is_encrypted else 0)
        assert blind.stdout.count('{"kind":"unreadable","key":"') == len(blind.stdout.splitlines())
        assert blind.stdout.count("key 'k1' is needed: no keys are given; give keys that have it") == segments * is_encrypted
        assert blind.stderr.startswith(
            f"tiering: 0 anomalies; {segments} segments unreadable; " if is_encrypted else "tiering: 0"
        )


def check_offsets_of_both_tiers(log: TieredLog, name: str, end: int, every: int) -> None:
    """Every answer is the broker's, but for those that tell how much is archived and how much is still there."""
    answers = live(name)
    assert asked(log, LATEST) == answers["latest"]
    assert asked(log, LATEST, Isolation.read_committed)[0] == answers["last_stable_offset"]
    assert asked(log, EARLIEST) == answers["earliest"]
    assert asked(log, MAX_TIMESTAMP) == answers["max_timestamp"]
    assert log.local is not None
    assert asked(log, EARLIEST_LOCAL)[0] == max(log.local.segments[0].base_offset, answers["earliest"][0])
    assert asked(log, LATEST_TIERED)[0] == end - 1
    assert asked(log, EARLIEST_PENDING_UPLOAD)[0] == end
    for timestamp, *expected in answers["offset_for_timestamp"][::every]:
        assert asked(log, timestamp) == expected


def check_offsets_of_the_archive(log: TieredLog, name: str, end: int, every: int) -> None:
    """What the archive has, it answers as the broker did; of what it has not, it says nothing."""
    answers = live(name)
    assert [asked(log, number)[0] for number in (LATEST, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)] == [end, end - 1, end]
    assert asked(log, EARLIEST) == answers["earliest"]
    assert asked(log, EARLIEST_LOCAL) == NOTHING
    if answers["max_timestamp"][0] < end:
        assert asked(log, MAX_TIMESTAMP) == answers["max_timestamp"]
    for timestamp, *expected in answers["offset_for_timestamp"][::every]:
        assert asked(log, timestamp) == (expected if expected[0] < end else NOTHING)


def asked(log: TieredLog, timestamp: int, isolation: Isolation = Isolation.read_uncommitted) -> list[int]:
    found = log.list_offsets(timestamp, isolation)
    return [found.offset, found.timestamp, found.leader_epoch] if found else NOTHING


@pytest.fixture
def ways(run: Run, rows: Rows, records: Records, rolled: Path, shed: Path, tmp_path: Path) -> Ways:
    """Into archives of `rolled`, of which everything but an open transaction is due."""
    return Ways(run, rows, records, rolled, shed, tmp_path)


@pytest.mark.parametrize("encoding", ["none", "zstd+aes-256-gcm"])
def test_a_folder_gives_back_every_record_answer_and_byte(ways: Ways, tmp_path: Path, encoding: str) -> None:
    ways.check_all(str(tmp_path / "archive"), encoding, partitions())


def test_moto_s_server_gives_back_every_record_answer_and_byte(ways: Ways, s3_bucket: str) -> None:
    ways.check_all(f"s3://{s3_bucket}/archive", "zstd", ON_SERVERS, every=9)


@pytest.mark.strict_s3
@pytest.mark.parametrize("encoding", ["none", "aes-256-gcm"])
def test_a_strict_server_gives_back_every_record_answer_and_byte(ways: Ways, strict_bucket: str, encoding: str) -> None:
    ways.check_all(f"s3://{strict_bucket}/archive", encoding, ON_SERVERS, every=9)
