"""Names in a log directory: whatever is made is parsed, and nothing else."""

import pytest
from golden_logs import partitions
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import Invalid
from local_log.formats.filenames import (
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    TIME_INDEX,
    TXN_INDEX,
    LogDirName,
    TopicPartition,
    marked_log_dir,
    offset_file,
    parse_log_dir,
    parse_offset_file,
    parse_partition_dir,
    parse_position_file,
    position_file,
)

SUFFIXES = [LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT]
NAMES = st.text("abcXYZ019._-", min_size=1, max_size=249)


@given(offset=st.integers(0, 2**63 - 1), suffix=st.sampled_from(SUFFIXES))
def test_a_file_s_name_parses_to_what_it_was_made_of(offset: int, suffix: str) -> None:
    assert parse_offset_file(offset_file(offset, suffix)) == (offset, suffix)


@given(position=st.integers(0, 2**63 - 1))
def test_a_name_of_kafka_0_7_parses_to_what_it_was_made_of(position: int) -> None:
    assert parse_position_file(position_file(position)) == position
    assert parse_position_file(f"{position}.kafka") == position
    assert parse_offset_file(position_file(position)) is None


@pytest.mark.parametrize("name", [".kafka", "1.kafka.deleted", "-1.kafka", "+1.kafka", f"{2**63}.kafka", "1.log", "\u0661.kafka"])
def test_a_name_that_is_no_segment_s_of_kafka_0_7_is_none(name: str) -> None:
    assert parse_position_file(name) is None


@given(topic=NAMES, partition=st.integers(0, 2**31 - 1))
def test_a_folder_s_name_parses_to_what_it_was_made_of(topic: str, partition: int) -> None:
    assert parse_partition_dir(str(TopicPartition(topic, partition))) == TopicPartition(topic, partition)


@given(name=st.one_of(st.text(max_size=30), st.from_regex(r"\d{20}\.(log|index|snapshot)", fullmatch=True)))
def test_a_file_s_name_that_parses_is_the_one_that_would_be_made(name: str) -> None:
    parsed = parse_offset_file(name)
    assert parsed is None or offset_file(*parsed) == name


@given(name=st.one_of(st.text(max_size=30), st.from_regex(r"[a-z.-]{1,9}-\d{1,10}", fullmatch=True)))
def test_a_folder_s_name_that_parses_is_the_one_that_would_be_made(name: str) -> None:
    parsed = parse_partition_dir(name)
    assert parsed is None or (str(parsed) == name and parsed.partition < 2**31)


def test_golden_folders_parse() -> None:
    assert [str(parse_partition_dir(name)) for name in partitions()] == list(partitions())


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000.log.deleted",
        "00000000000000000000.log.swap",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.index.deleted",
        "00000000000000000000.timeindex.swap",
        "00000000000000000000.snapshot.deleted",
        "00000000000000000000.log\n",
        " 00000000000000000000.log",
        "00000000000000000000.LOG",
        "00000000000000000000",
        "00000000000000000000.",
        "0.log",
        "000000000000000000000.log",
        "-0000000000000000001.log",
        "09223372036854775808.log",
        "99999999999999999999.log",
        "leader-epoch-checkpoint",
        "leader-epoch-checkpoint.tmp",
        "partition.metadata",
        "remote_log_snapshot",
        "",
    ],
)
def test_a_name_that_is_no_segment_s_is_none(name: str) -> None:
    assert parse_offset_file(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "orders-0.0a1b2c3d4e5f-delete",
        "orders-0.0a1b2c3d4e5f-stray",
        "orders-0.0a1b2c3d4e5f-future",
        "orders-0-delete",
        "orders-0-stray",
        "orders",
        "orders-",
        "-0",
        "orders-0\n",
        "orders-x",
        "or ders-0",
        "a" * 250 + "-0",
        "meta.properties",
        ".kafka_cleanshutdown",
        "",
    ],
)
def test_a_folder_that_is_no_partition_s_is_none(name: str) -> None:
    assert parse_partition_dir(name) is None


@pytest.mark.parametrize("offset", [-1, 2**63])
def test_an_offset_that_kafka_cannot_have_names_no_file(offset: int) -> None:
    with pytest.raises(Invalid, match=r"0 to 2\^63-1"):
        offset_file(offset, LOG)
    with pytest.raises(Invalid, match=r"0 to 2\^63-1"):
        position_file(offset)


def test_partitions_sort_by_topic_then_number() -> None:
    unsorted = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert [str(p) for p in sorted(unsorted)] == ["a-9", "a-10", "b-0"]


ORDERS = TopicPartition("orders", 3)


@pytest.mark.parametrize("mark", ["-delete", "-stray", "-future"])
def test_a_marked_folder_s_name_parses_to_what_it_was_made_of(mark: str) -> None:
    name = marked_log_dir(ORDERS, "0a1b2c", mark)
    assert name == f"orders-3.0a1b2c{mark}"
    assert parse_log_dir(name) == LogDirName(ORDERS, mark)


@given(topic=NAMES, partition=st.integers(0, 2**31 - 1))
def test_an_unmarked_folder_is_the_partition_s_own(topic: str, partition: int) -> None:
    assert parse_log_dir(str(TopicPartition(topic, partition))) == LogDirName(TopicPartition(topic, partition), "")


@pytest.mark.parametrize("mark", ["-delete", "-stray"])
def test_a_topic_too_long_for_the_mark_is_cut(mark: str) -> None:
    name = marked_log_dir(TopicPartition("x" * 249, 0), "a" * 32, mark)
    assert len(name) == 255
    assert parse_log_dir(name) == LogDirName(TopicPartition("x" * (255 - len(f"-0.{'a' * 32}{mark}")), 0), mark)


@pytest.mark.parametrize("name", ["orders-03", "orders-+3"])
def test_a_number_is_read_as_loosely_as_kafka_reads_it(name: str) -> None:
    assert parse_log_dir(name) == LogDirName(ORDERS, "")


@pytest.mark.parametrize(
    "name",
    [
        "lost+found",
        "orders",
        "orders-",
        "-0",
        "orders-x",
        "orders-2147483648",
        "orders-0-delete",
        "orders.a-delete",
        "a b-0.c-stray",
        "",
    ],
)
def test_a_folder_that_stops_kafka_s_log_manager_is_none(name: str) -> None:
    assert parse_log_dir(name) is None
