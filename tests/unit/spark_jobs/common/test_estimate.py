"""What a job is expected to read: held against what reading really takes."""

from dataclasses import replace

import pytest

from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.common.estimate import Work, as_rows, bytes_of, cost, counted, of_split, of_splits
from spark_jobs.common.prices import prices_of, table
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import Split, plan_splits
from spark_jobs.source.rows import read_split


def planned(archive: str, topics: str, **options: str) -> tuple[Split, ...]:
    return plan_splits(open_store(archive), parse({"archive": archive, "subscribe": topics, **options}))


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("parts", ["1", "40"])
def test_reading_takes_as_many_requests_as_estimated(archive: str, committed: bool, parts: str) -> None:
    for split in planned(archive, "g-txn,g-codec-none,g-big", minPartitions=parts):
        meter = Meter()
        store = open_store(archive, meter=meter)
        for _ in read_split(store, split, ["offset"], read_committed=committed, first_bytes=8 << 20):
            pass
        assert counted(meter.snapshot()).reads == of_split(split, with_aborted=committed).reads


def test_whole_segments_are_estimated_to_the_byte(archive: str) -> None:
    splits, meter = planned(archive, "g-codec-none,g-txn"), Meter()
    for split in splits:
        for _ in read_split(open_store(archive, meter=meter), split, ["offset"], read_committed=False, first_bytes=8 << 20):
            pass
    assert of_splits(splits) == counted(meter.snapshot())
    assert of_splits(splits).read_bytes == sum(s.span.entry.log_size for s in splits)


def test_a_cut_segment_has_the_bytes_of_its_share_of_offsets(archive: str) -> None:
    whole, *_ = planned(archive, "g-codec-none")
    half = replace(whole, span=replace(whole.span, end=whole.span.end // 2))
    assert bytes_of(half) == pytest.approx(bytes_of(whole) / 2, rel=0.01)


def test_partitions_are_rows_with_their_offsets_splits_and_bytes(archive: str) -> None:
    splits = planned(archive, "g-txn,g-tiny")
    txn, tiny = as_rows(splits)
    assert (txn["topic"], txn["partition"], txn["start"], txn["end"], txn["splits"]) == ("g-txn", 0, 0, 2744, 3)
    assert tiny["topic"] == "g-tiny"
    assert txn["bytes"] + tiny["bytes"] == of_splits(splits).read_bytes


def test_a_cost_is_requests_and_retrieval_with_egress_apart() -> None:
    prices = prices_of(table(), "s3://bucket", "s3-glacier-ir")
    bill = cost(Work(reads=2000, writes=500, read_bytes=10 << 30), prices)
    assert bill["requests_usd"] == pytest.approx(2 * prices.reads_per_1000 + 0.5 * prices.writes_per_1000)
    assert bill["retrieval_usd"] == pytest.approx(10 * prices.retrieval_per_gb)
    assert bill["total_usd"] == pytest.approx(bill["requests_usd"] + bill["retrieval_usd"])
    assert bill["egress_usd_from_elsewhere"] == pytest.approx(10 * prices.egress_per_gb)


def test_nothing_to_read_costs_nothing() -> None:
    assert of_splits(()) == Work()
    assert cost(Work(), prices_of(table(), "s3://bucket"))["total_usd"] == 0
