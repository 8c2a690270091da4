"""Small segments share a task: few tasks for many of them, and every split in just one, in its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_archive import made
from made_manifests import entry

from remote.manifest.model import never_archived
from remote.read.plan import Span
from remote.store.folder.store import FolderStore
from spark_jobs.source.batch_reader import BatchReader, SplitPartition, input_partitions
from spark_jobs.source.options import BYTES_PER_SPLIT_MIN, parse
from spark_jobs.source.partitions import Split
from spark_jobs.source.stream.options import parse_stream
from spark_jobs.source.stream.reader import StreamReader
from spark_jobs.work_division import OPEN_BYTES, PACK_BYTES

RECORDS = 10


def split(number: int, size: int, partition: int = 0) -> Split:
    manifest = never_archived("t", "A" * 22, partition, 0)
    segment = entry(number * RECORDS, (number + 1) * RECORDS, log_size=size)
    return Split(manifest, Span(segment, segment.base_offset, segment.end_offset))


def packs(splits: list[Split], **options: object) -> list[tuple[Split, ...]]:
    given = {name: str(value) for name, value in options.items()}
    parts = input_partitions(splits, parse({"archive": "any", "subscribe": "t", **given}))
    return [part.splits for part in parts if isinstance(part, SplitPartition)]


def test_ten_thousand_segments_of_some_kb_make_few_tasks() -> None:
    tiny = [split(n, 4_000) for n in range(10_000)]
    assert len(packs(tiny)) == 49
    assert max(map(len, packs([split(n, 100) for n in range(10_000)]))) < PACK_BYTES // OPEN_BYTES
    assert len(packs(tiny, minPartitions=200)) in range(200, 220)
    assert len(packs(tiny, minPartitions=10_000)) == len(packs(tiny, minPartitions=30_000)) == 10_000
    assert len(packs(tiny, maxRecordsPerPartition=50)) == 2_000


def test_what_is_worth_a_task_has_one() -> None:
    large = [split(n, PACK_BYTES) for n in range(5)]
    assert [len(pack) for pack in packs(large)] == [1] * 5
    between = [large[0], split(1, 1_000), split(2, 1_000), large[3]]
    assert [len(pack) for pack in packs(between)] == [1, 2, 1]


def test_one_large_split_does_not_leave_fewer_tasks_than_asked_for() -> None:
    assert len(packs([*(split(n, 1) for n in range(4)), split(4, 49_156)], minPartitions=4)) == 4


def test_partitions_share_no_task() -> None:
    both = [split(n, 1_000, partition) for partition in (0, 1) for n in range(3)]
    assert [{s.partition for s in pack} for pack in packs(both)] == [{0}, {1}]


@given(
    st.lists(st.tuples(st.integers(1, 8 << 20), st.integers(0, 2)), max_size=60),
    st.none() | st.integers(1, 80),
    st.none() | st.integers(RECORDS, 100),
    st.none() | st.integers(BYTES_PER_SPLIT_MIN, 8 << 20),
)
def test_every_split_is_in_one_pack_in_its_order_and_packs_keep_to_what_was_asked(
    sizes: list[tuple[int, int]], parts_min: int | None, records_max: int | None, bytes_per_split: int | None
) -> None:
    splits = [split(n, size, p) for n, (size, p) in enumerate(sorted(sizes, key=lambda s: s[1]))]
    asked = {"minPartitions": parts_min, "maxRecordsPerPartition": records_max, "bytesPerSplit": bytes_per_split}
    found = packs(splits, **{name: value for name, value in asked.items() if value is not None})
    assert [s for pack in found for s in pack] == splits
    assert len(found) >= min(parts_min or 0, len(splits))
    for pack in found:
        assert len({s.partition for s in pack}) == 1
        if len(pack) > 1:
            assert sum(s.bytes for s in pack) <= min(PACK_BYTES, bytes_per_split or PACK_BYTES)
            assert RECORDS * len(pack) <= (records_max or RECORDS * len(pack))


@pytest.fixture(scope="module")
def of_300_segments(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an archive."""
    store = FolderStore(str(tmp_path_factory.mktemp("packed") / "archive"))
    made(store, [[[s * 100 + r for r in range(4)]] for s in range(300)])
    return store.url


@pytest.mark.parametrize("kind", ["batch", "stream"])
@pytest.mark.slow
def test_a_task_reads_all_rows_of_its_pack_in_order(of_300_segments: str, kind: str) -> None:
    given = {"archive": of_300_segments, "subscribe": "made"}
    if kind == "batch":
        reader: BatchReader | StreamReader = BatchReader(parse({**given, "pinHours": "0"}), ("offset",))
        parts = reader.partitions()  # type: ignore[call-arg]
    else:
        reader = StreamReader(parse_stream({**given, "startingOffsets": "earliest"}), ("offset",))
        start = reader.initialOffset()
        parts = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    assert all(isinstance(part, SplitPartition) for part in parts)
    assert len(parts) in (2, 3)
    rows = [[o for batch in reader.read(part) for o in batch.column(0).to_pylist()] for part in parts]
    assert [offset for of_task in rows for offset in of_task] == [*range(1_200)]
