"""Rows to Parquet files by folder: all of them, in order, with bounds on memory and open files."""

from collections import defaultdict
from itertools import count
from pathlib import Path
from random import Random  # noqa: TID251  # from a seed

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.common import parquet_files
from spark_jobs.common.layout import By
from spark_jobs.common.parquet_files import ParquetFiles

DAY_US = 24 * 3_600_000_000
SCHEMA = pa.schema([("value", pa.binary()), ("offset", pa.int64()), ("timestamp", pa.timestamp("us", tz="UTC"))])


def batches(days: list[int], rows_each: int = 10) -> list[pa.RecordBatch]:
    """A batch of `rows_each` rows; their days are taken from `days` one after the other."""
    times = iter(days)
    made = []
    for start in range(0, len(days), rows_each):
        day = [next(times) for _ in range(rows_each)]
        columns = [
            pa.array([b"%d" % o * 10 for o in range(start, start + rows_each)], pa.binary()),
            pa.array(range(start, start + rows_each), pa.int64()),
            pa.array([d * DAY_US for d in day], pa.int64()).cast(SCHEMA.field("timestamp").type),
        ]
        made.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
    return made


def written(
    folder: Path, given: list[pa.RecordBatch], file_bytes: int = parquet_files.FILE_BYTES
) -> tuple[ParquetFiles, dict[str, list[str]]]:
    paths: dict[str, list[str]] = defaultdict(list)
    numbers = count()

    def place(name: str, number: int) -> str:
        assert number == len(paths[name])
        paths[name].append(str(folder / f"{next(numbers)}"))
        return paths[name][-1]

    files = ParquetFiles(SCHEMA, "orders", By.date, "snappy", place, file_bytes)
    files.write_all(given)
    return files, paths


def offsets(paths: list[str]) -> list[int]:
    return [o for path in paths for o in pq.ParquetFile(path).read().column("offset").to_pylist()]


@pytest.mark.parametrize("seed", range(4))
def test_every_row_is_in_its_days_files_however_few_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(parquet_files, "OPEN_FILES_MAX", 3)
    monkeypatch.setattr(parquet_files, "HELD_BYTES_MAX", 2000)
    days = Random(seed).choices(range(8), k=500)
    files, paths = written(tmp_path, batches(days))
    for day in range(8):
        assert offsets(paths[f"topic=orders/date=1970-01-0{day + 1}"]) == [o for o, d in enumerate(days) if d == day]
    assert sum(files.rows.values()) == 500
    assert all(files.rows[path] == pq.ParquetFile(path).metadata.num_rows for of_day in paths.values() for path in of_day)
    assert any(len(of_day) > 1 for of_day in paths.values())


def test_rows_of_one_day_are_one_file_of_full_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "ROW_GROUP_BYTES", 1000)
    _, paths = written(tmp_path, batches([3] * 200))
    ((path,),) = paths.values()
    metadata = pq.ParquetFile(path).metadata
    assert metadata.num_rows == 200
    assert metadata.num_row_groups > 3


def test_a_file_that_is_large_enough_is_followed_by_another_one(tmp_path: Path) -> None:
    _, paths = written(tmp_path, batches([3] * 2000), file_bytes=5000)
    ((*files,),) = paths.values()
    assert offsets(files) == list(range(2000))
    sizes = [Path(file).stat().st_size for file in files]
    assert len(sizes) > 3
    assert all(5000 <= size < 20_000 for size in sizes[:-1]), sizes


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    files, paths = written(tmp_path, [])
    assert (files.rows, dict(paths), list(tmp_path.iterdir())) == ({}, {}, [])


def test_files_are_closed_when_reading_fails(tmp_path: Path) -> None:
    def failing():
        yield from batches([0] * 10)
        raise RuntimeError("the archive is gone")

    files = ParquetFiles(SCHEMA, "orders", By.date, "snappy", lambda name, number: str(tmp_path / "file"))
    with pytest.raises(RuntimeError, match="the archive is gone"):
        files.write_all(failing())
    assert files.rows == {}
