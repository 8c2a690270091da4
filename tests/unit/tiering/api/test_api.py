"""The Python API: topics, coverage, records as Arrow streams, offsets by time, over one tier or both."""

import re
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy
import pyarrow as pa
import pytest
from golden_logs import live, partitions
from logs_to_archive import all_records, for_applications, local_logs, offload_all, path_of, set_checkpoint
from tiered_worlds import World

import tiering
from local_log.errors import Corrupt, Invalid, NotFound, OffsetOutOfRange
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.formats.list_offsets import EARLIEST, EARLIEST_PENDING_UPLOAD, LATEST
from remote.manifest.store import load_newest
from remote.store.folder.store import FolderStore
from tiering.api import COVERAGE, DEFAULT_COLUMNS, FIELDS, Reader, _ms, open_reader
from tiering.wiring import Tiers, open_reading, read_ahead_pool

ROOT = Path(__file__).parents[4]


def rows_of(stream: pa.RecordBatchReader) -> pa.Table:
    return stream.read_all().combine_chunks()


def in_api_form(records: pa.Table, partition: int = 0) -> pa.Table:
    columns = {"partition": pa.array([partition] * len(records), pa.int32())}
    columns |= {name: records.column(name) for name in ("offset", "key", "value", "headers")}
    columns["timestamp"] = records.column("timestamp").cast(FIELDS["timestamp"])
    return pa.table({name: columns[name] for name in DEFAULT_COLUMNS}).combine_chunks()


def end_of(reader: Reader, topic: str) -> int:
    (row,) = reader.coverage(topic).to_pylist()
    end: int = row["end_offset"]
    return end


# what there is


def test_every_topic_is_named_in_order(reader: Reader) -> None:
    found = reader.topics()
    assert set(found) <= {name.removesuffix("-0") for name in partitions()}
    assert list(found) == sorted(found)
    assert "g-txn" in found


def test_coverage_says_what_the_tiers_hold(reader: Reader, world: World, archive: str) -> None:
    table = reader.coverage()
    assert table.schema == COVERAGE
    shown = tuple(dict.fromkeys(table.column("topic").to_pylist()))
    assert set(reader.topics()) - set(shown) <= {"g-appendtime", "g-empty", "g-tiny", "g-trimmed", "g-logappend"}
    assert shown == tuple(topic for topic in reader.topics() if topic in shown)
    for row in table.to_pylist():
        name = f"{row['topic']}-{row['partition']}"
        assert (row["error"], row["gaps"]) == (None, [])
        assert row["log_start_offset"] == live(name)["earliest"][0]
        local = world.log("local alone", name).local
        assert local is not None
        newest = load_newest(FolderStore(archive), path_of(local))
        if row["archived_segments"] is not None:
            assert newest is not None
            entries = newest.manifest.entries
            assert row["archived_segments"] == len(entries)
            assert row["archived_bytes"] == sum(e.log_size + e.aux_size for e in entries)
            assert row["archived_end_offset"] == entries[-1].end_offset
            assert row["max_timestamp"] == datetime.fromtimestamp(0, UTC) + timedelta(
                milliseconds=max(e.max_timestamp_ms for e in entries)
            )
        if row["local_bytes"] is not None:
            assert row["end_offset"] == live(name)["latest"][0]


@pytest.mark.slow
def test_a_partition_that_cannot_be_read_is_named_and_hides_no_other(world: World, tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path / "archive"))
    offload_all(world.folders["local alone"], store)
    manifest = min((tmp_path / "archive" / "g-txn").rglob("*.json"))  # the newest
    manifest.chmod(0o644)
    manifest.write_bytes(b"{")
    with open_reader(archive=str(tmp_path / "archive")) as reader:
        rows = {row["topic"]: row for row in reader.coverage().to_pylist()}
        assert "g-txn" in rows["g-txn"]["error"]
        assert rows["g-txn"]["end_offset"] is None
        assert rows["g-mixed"]["error"] is None
        assert reader.read("g-mixed").read_all().num_rows
        with pytest.raises(Corrupt):
            reader.read("g-txn")


# records


@pytest.mark.parametrize("topic", ["g-txn", "g-mixed", "g-codec-zstd", "g-trimmed", "g-compacted-txn"])
def test_a_read_gives_every_record_with_its_columns(reader: Reader, world: World, topic: str) -> None:
    first, end = live(f"{topic}-0")["earliest"][0], end_of(reader, topic)
    stream = reader.read(topic)
    assert stream.schema == pa.schema([(name, FIELDS[name]) for name in DEFAULT_COLUMNS])
    assert rows_of(stream).equals(in_api_form(for_applications(world.records[f"{topic}-0"], first, end)))


def test_offsets_bound_a_read(reader: Reader, world: World) -> None:
    records = world.records["g-mixed-0"]
    for start, end in ((None, 40), (100, 900), (1_800, None), (700, 700), (800, 20)):
        expected = for_applications(records, start or 0, min(end or 1 << 40, end_of(reader, "g-mixed")))
        assert rows_of(reader.read("g-mixed", 0, start_offset=start, end_offset=end)).equals(in_api_form(expected))


def test_times_bound_a_read_as_the_first_records_that_are_as_late(reader: Reader, world: World) -> None:
    end = end_of(reader, "g-codec-lz4")
    records = for_applications(world.records["g-codec-lz4-0"], 0, end)
    offsets, times = records.column("offset").to_pylist(), records.column("timestamp").to_pylist()
    from_ms, to_ms = sorted(times)[500], sorted(times)[1_500]
    start = next(o for o, t in zip(offsets, times, strict=True) if t >= from_ms)
    stop = next(o for o, t in zip(offsets, times, strict=True) if t >= to_ms)
    expected = in_api_form(for_applications(records_with_control(records), start, stop))
    assert rows_of(reader.read("g-codec-lz4", start_time=from_ms, end_time=to_ms)).equals(expected)
    as_dates = [datetime.fromtimestamp(ms / 1000, timezone(timedelta(hours=5))) for ms in (from_ms, to_ms)]
    assert rows_of(reader.read("g-codec-lz4", start_time=as_dates[0], end_time=as_dates[1])).equals(expected)
    both = reader.read("g-codec-lz4", 0, start_time=from_ms, start_offset=start + 7, end_time=to_ms, end_offset=stop + 7)
    assert rows_of(both).equals(expected.slice(7))
    assert reader.read("g-codec-lz4", start_time=max(times) + 1).read_all().num_rows == 0
    assert reader.read("g-codec-lz4", end_time=max(times) + 1).read_all().num_rows == len(records)


def records_with_control(records: pa.Table) -> pa.Table:
    nothing = pa.array([False] * len(records))
    return records.append_column("control", nothing).append_column("leader_epoch", nothing)


def test_committed_reads_leave_out_what_was_aborted_and_what_is_undecided(reader: Reader) -> None:
    end = end_of(reader, "g-txn")
    expected = [o for o in live("g-txn-0")["read_committed_offsets"] if o < end]
    assert reader.read("g-txn", isolation="read_committed").read_all().column("offset").to_pylist() == expected


def test_only_the_columns_that_are_wanted_come_in_their_order(reader: Reader) -> None:
    stream = reader.read("g-appendtime", columns=["timestamp_type", "value", "offset"])
    table = stream.read_all()
    assert table.schema.names == ["timestamp_type", "value", "offset"]
    assert set(table.column("timestamp_type").to_pylist()) == {1}


def test_a_stream_reads_only_what_is_taken_of_it(world: World, archive: str) -> None:
    class Counting(FolderStore):
        asked = 0

        def get_range(self, key: str, start: int, end: int) -> bytes:
            self.asked += end - start
            return super().get_range(key, start, end)

    store = Counting(archive)
    pool = read_ahead_pool(1)
    reader = Reader(Tiers(None, store, open_reading(None, 0, pool)), pool)
    stream = reader.read("g-codec-none")
    assert store.asked == 0
    first = stream.read_next_batch()
    assert first.num_rows
    assert store.asked < 1_000_000
    reader.close()


def test_all_partitions_come_one_after_the_other(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(world.folders["local alone"] / "g-mixed-0", folder / "two-0")
    shutil.copytree(world.folders["local alone"] / "g-mixed-0", folder / "two-1")
    (folder / HIGH_WATERMARK_CHECKPOINT).write_text("0\n0\n")
    (folder / "log-start-offset-checkpoint").write_text("0\n0\n")
    for name, end in (("two-0", 2_319), ("two-1", 1_000)):
        set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, name, end)
    records = all_records(local_logs(folder)["two-0"])
    with open_reader(log_dir=str(folder)) as reader:
        table = rows_of(reader.read("two"))
        parts = [in_api_form(for_applications(records, 0, end), n) for n, end in enumerate((2_319, 1_000))]
        assert table.equals(pa.concat_tables(parts).combine_chunks())
        assert rows_of(reader.read("two", 1)).equals(parts[1])
        assert reader.list_offsets("two", LATEST) == {0: 2_319, 1: 1_000}
        with pytest.raises(Invalid, match="partition"):
            reader.read("two", start_offset=5)


# offsets


@pytest.mark.parametrize("topic", ["g-txn", "g-epochs", "g-tiny"])
def test_offsets_by_time_are_those_that_the_broker_told(world: World, topic: str) -> None:
    with open_reader(log_dir=str(world.folders["local alone"])) as reader:
        for asked, offset, *_ in live(f"{topic}-0")["offset_for_timestamp"]:
            assert reader.list_offsets(topic, asked) == {0: offset if offset >= 0 else None}
        assert reader.list_offsets(topic, EARLIEST) == {0: live(f"{topic}-0")["earliest"][0]}
        assert reader.list_offsets(topic, EARLIEST_PENDING_UPLOAD) == {0: None}
        stable = live(f"{topic}-0")["last_stable_offset"]
        assert reader.list_offsets(topic, LATEST, isolation="read_committed") == {0: stable}


def test_a_datetime_between_two_ms_is_as_late_as_the_second() -> None:
    exact = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    assert _ms(exact) == round(exact.timestamp() * 1000)
    assert _ms(exact + timedelta(microseconds=1)) == _ms(exact) + 1
    assert _ms(exact - timedelta(microseconds=1)) == _ms(exact)
    assert _ms(datetime(1969, 12, 31, 23, 59, 59, 999_500, UTC)) == 0


@pytest.mark.parametrize(
    "time",
    [
        1_700_000_500_000, numpy.int64(1_700_000_500_000), "1700000500000", "2023-11-14T22:21:40Z",
        datetime(2023, 11, 14, 22, 21, 40, 0, UTC), datetime(2023, 11, 15, 3, 21, 40, 0, timezone(timedelta(hours=5))),
    ],
    ids=repr,
)  # fmt: skip
def test_a_time_may_be_a_number_a_text_or_a_datetime(reader: Reader, time: Any) -> None:
    assert reader.list_offsets("g-txn", time) == {0: 102}
    for by_time, by_offset in (({"start_time": time}, {"start_offset": 102}), ({"end_time": time}, {"end_offset": 102})):
        found, expected = (reader.read("g-txn", 0, columns=["offset"], **bounds).read_all() for bounds in (by_time, by_offset))
        assert found.num_rows > 50
        assert found.equals(expected)


# refusals


@pytest.mark.parametrize("time", [1.5, True, date(2026, 1, 1), b"2026", [1], "yesterday", "2026-13-01", datetime(2026, 1, 1)])  # noqa: DTZ001
def test_what_is_no_time_is_refused_with_what_is_one(reader: Reader, time: Any) -> None:
    for ask in (lambda: reader.read("g-txn", start_time=time), lambda: reader.list_offsets("g-txn", time)):
        with pytest.raises(Invalid, match=r"2026-11-20T10:00Z|tzinfo=UTC, or milliseconds"):
            ask()


def test_a_cache_may_be_as_large_as_people_write_it(archive: str, tmp_path: Path) -> None:
    open_reader(archive=archive, cache_dir=str(tmp_path), cache_bytes_max="1.5GiB").close()
    with pytest.raises(Invalid, match="500kB, 50MB"):
        open_reader(archive=archive, cache_dir=str(tmp_path), cache_bytes_max="large")


# refused before anything is read


def test_what_makes_no_sense_is_refused_before_anything_is_read(reader: Reader) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"columns": ["offset", "values"]}, "values"),
        ({"columns": []}, "column"),
        ({"isolation": "serializable"}, "read_committed"),
        ({"start_time": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001  # that is the point
    ]
    for arguments, word in refused:
        with pytest.raises(Invalid, match=word):
            reader.read("g-txn", 0, **arguments)
    with pytest.raises(Invalid, match="archive="):
        open_reader()


def test_what_is_not_there_is_not_found(reader: Reader, tmp_path: Path) -> None:
    for topic, partition in (("nowhere", None), ("nowhere", 0), ("g-txn", 7)):
        with pytest.raises(Exception, match=r"nowhere|partition 7") as raised:
            reader.read(topic, partition)
        assert type(raised.value).__name__ == "NotFound"
    with pytest.raises(NotFound):
        open_reader(archive=str(tmp_path / "nothing"))


def test_an_offset_outside_the_log_is_out_of_range_when_the_stream_is_read(reader: Reader) -> None:
    stream = reader.read("g-trimmed", 0, start_offset=3)
    with pytest.raises(OffsetOutOfRange):
        stream.read_all()


@pytest.mark.slow
def test_damage_is_raised_by_the_stream_where_it_lies(world: World, tmp_path: Path) -> None:
    offload_all(world.folders["local alone"], FolderStore(str(tmp_path / "archive")))
    damaged = sorted((tmp_path / "archive" / "g-mixed").rglob("*.log"))[3]
    damaged.chmod(0o644)
    body = damaged.read_bytes()
    damaged.write_bytes(body[:-1] + bytes([body[-1] ^ 1]))
    with open_reader(archive=str(tmp_path / "archive")) as reader:
        batches = iter(reader.read("g-mixed"))
        assert next(batches).num_rows > 0
        with pytest.raises(Corrupt) as raised:
            list(batches)
        assert raised.value.file.endswith(damaged.name)


# a cache


def test_with_a_cache_folder_the_second_process_reads_no_segment_again(world: World, archive: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with open_reader(archive=archive, cache_dir=str(cache)) as reader:
        expected = rows_of(reader.read("g-mixed", isolation="read_committed"))
        assert [*reader.list_offsets("g-mixed", 0)] == [0]
    assert {file.suffix for file in cache.rglob("*.*")} == {".chunk", ".indexes", ".seen"}
    moved = Path(archive).parent / "moved"
    segments = [*(Path(archive) / "g-mixed").rglob("segments")]
    assert len(segments) == 1
    segments[0].rename(moved)
    try:
        with open_reader(archive=archive, cache_dir=str(cache)) as reader:
            assert rows_of(reader.read("g-mixed", isolation="read_committed")).equals(expected)
    finally:
        moved.rename(segments[0])


# others take it as it is


def test_duckdb_takes_a_stream_as_it_is(reader: Reader) -> None:
    duckdb = pytest.importorskip("duckdb")
    stream = reader.read("g-mixed")
    sql = 'select count(*), min("offset"), max("offset"), count(key), epoch_ms(min(timestamp)) from stream'
    count, first, last, keys, earliest = duckdb.sql(sql).fetchall()[0]
    table = reader.read("g-mixed").read_all()
    offsets = table.column("offset").to_pylist()
    assert (count, first, last) == (len(offsets), offsets[0], offsets[-1])
    assert keys == len(table) - table.column("key").null_count
    assert earliest == min(table.column("timestamp").cast(pa.int64()).to_pylist())
    assert stream is not None


def test_polars_takes_a_stream_as_it_is(reader: Reader) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(reader.read("g-mixed"))
    table = reader.read("g-mixed").read_all()
    assert frame.columns == list(DEFAULT_COLUMNS)
    assert frame["value"].to_list() == table.column("value").to_pylist()
    assert frame["timestamp"].to_list() == table.column("timestamp").to_pylist()


def test_whatever_speaks_arrow_s_c_stream_takes_it(reader: Reader) -> None:
    capsule = reader.read("g-mixed").__arrow_c_stream__()
    table = pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()
    assert table.equals(reader.read("g-mixed").read_all())


# the door


def test_the_package_hands_it_out_without_loading_it_before() -> None:
    code = "import sys, tiering; assert 'pyarrow' not in sys.modules; tiering.open_reader; assert 'tiering.api' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    assert tiering.Reader is Reader
    with pytest.raises(AttributeError, match="no attribute"):
        _ = tiering.nothing  # type: ignore[attr-defined]


def test_the_example_in_the_readme_runs(
    archive: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    (example,) = (e for e in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "open_reader" in e)
    if "duckdb" in example:
        pytest.importorskip("duckdb")
    exec(compile(example.replace("demo-out/archive", archive), "README.md", "exec"), {})
    assert capsys.readouterr().out.count("\n") >= 3
