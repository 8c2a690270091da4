"""Checkpoint files: leader epochs and offsets."""

from contextlib import suppress
from pathlib import Path

import pytest
from golden_logs import live, partitions
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.checkpoints import (
    EpochEntry,
    epoch_of,
    epochs_before,
    read_epoch_lines,
    read_epochs,
    read_offsets,
    write_epochs,
    write_offsets,
)
from local_log.formats.filenames import TopicPartition, parse_partition_dir

EPOCHS = (EpochEntry(0, 0), EpochEntry(2, 700), EpochEntry(4, 1400))

lineages = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=6, unique_by=lambda e: e[0]).map(
    lambda es: tuple(map(EpochEntry, sorted(e[0] for e in es), sorted(e[1] for e in es)))
)


def test_three_leader_epochs_are_read(broker: Path) -> None:
    assert read_epochs((broker / "g-epochs-0" / "leader-epoch-checkpoint").read_bytes()) == EPOCHS


def test_golden_epochs_are_written_as_they_were_read(broker: Path, partition: str) -> None:
    data = (broker / partition / "leader-epoch-checkpoint").read_bytes()
    assert write_epochs(read_epochs(data)) == data


@given(lineages)
def test_epochs_are_read_as_they_were_written(entries: tuple[EpochEntry, ...]) -> None:
    assert read_epochs(write_epochs(entries)) == entries


@given(entries=lineages, offset=st.integers(0, 2**63 - 1))
def test_an_offset_s_epoch_is_the_last_that_starts_at_or_below_it(entries: tuple[EpochEntry, ...], offset: int) -> None:
    assert epoch_of(entries, offset) == max((e.epoch for e in entries if e.start_offset <= offset), default=None)


def test_the_epochs_before_an_offset_are_those_with_offsets_below_it() -> None:
    assert epochs_before(EPOCHS, 1400) == EPOCHS[:2]
    assert epochs_before(EPOCHS, 1401) == EPOCHS
    assert epochs_before(EPOCHS, 0) == ()


@pytest.mark.parametrize("text", ["0\n2\n1 0\n1 5\n", "0\n2\n2 0\n1 5\n", "0\n2\n1 5\n2 4\n"])
def test_epochs_that_do_not_grow_are_corrupt(text: str) -> None:
    with pytest.raises(Corrupt, match="does not follow"):
        read_epochs(text.encode())


def test_high_watermarks_are_those_of_the_broker(broker: Path) -> None:
    found = read_offsets((broker / "replication-offset-checkpoint").read_bytes())
    assert {str(p): offset for p, offset in found.items() if p.topic.startswith("g-")} == {
        name: live(name)["latest"][0] for name in partitions()
    }


def test_log_start_offsets_are_there_where_they_are_not_the_first_segment_s(broker: Path) -> None:
    found = read_offsets((broker / "log-start-offset-checkpoint").read_bytes())
    assert found == {parse_partition_dir("g-trimmed-0"): live("g-trimmed-0")["earliest"][0]}


def test_a_checkpoint_without_lines_is_empty() -> None:
    assert read_offsets(b"0\n0\n") == {}
    assert read_epochs(b"0\n0\n") == ()


def test_an_empty_file_is_a_checkpoint_that_a_broker_has_yet_to_write() -> None:
    assert read_offsets(b"") == {}
    assert read_epochs(b"") == ()


@pytest.mark.parametrize("read", [read_offsets, read_epochs])
@pytest.mark.parametrize(
    "data",
    [b"0", b"0\n", b"1\n0\n", b"0\n1\n", b"0\n0\n1 2 3\n", b"0\n1\n1\n", b"0\n1\na b c d\n", b"0\n1\nt x 3\n", b"\xff\n0\n"],
)
def test_what_is_no_checkpoint_is_corrupt(read: object, data: bytes) -> None:
    with pytest.raises(Corrupt):
        read(data)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"rubbish", "begins with its version, a line 0; found 'rubbish'"),
        (b"0", "number of lines that follow, 0; found ''"),
        (b"0\n3\nt 0 1\n", "number of lines that follow, 1; found '3'"),
        (b"0\n1\nt 0\n", "expected a line of topic, partition and offset; found 't 0'"),
        (b"0\n1\nt 0 x\n", "expected a line of topic, partition and offset; found 't 0 x'"),
        (b"0\n1\nt\xff 0 1\n", "ASCII; found byte 0xff"),
    ],
)
def test_what_is_no_checkpoint_is_told_with_what_was_expected_and_found(data: bytes, message: str) -> None:
    with pytest.raises(Corrupt) as caught:
        read_offsets(data)
    assert message in str(caught.value)


def test_a_checkpoint_cut_at_any_byte_but_the_first_is_corrupt(broker: Path) -> None:
    for whole, read in (
        ((broker / "replication-offset-checkpoint").read_bytes(), read_offsets),
        ((broker / "g-epochs-0" / "leader-epoch-checkpoint").read_bytes(), read_epochs),
    ):
        for cut in range(1, len(whole)):
            with pytest.raises(Corrupt):
                read(whole[:cut])  # type: ignore[operator]


def test_epochs_that_were_cut_are_to_the_engine_what_they_are_to_kafka(broker: Path) -> None:
    whole = (broker / "g-epochs-0" / "leader-epoch-checkpoint").read_bytes()
    assert whole == b"0\n3\n0 0\n2 700\n4 1400\n"
    found: dict[int, object] = {}
    for cut in range(len(whole) + 1):
        with suppress(Corrupt):
            found[cut] = read_epoch_lines(whole[:cut])
    short = {len(whole) - 5 + len(number): (*EPOCHS[:2], EpochEntry(4, int(number))) for number in ("1", "14", "140", "1400")}
    assert found == {0: (), 1: (), 2: (), **short, len(whole): EPOCHS}


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.text("aZ0._-", min_size=1), st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1)
    )
)
def test_offsets_are_read_as_kafka_writes_them(offsets: dict[TopicPartition, int]) -> None:
    lines = [f"{p.topic} {p.partition} {offset}\n" for p, offset in offsets.items()]
    assert read_offsets("".join(["0\n", f"{len(lines)}\n", *lines]).encode()) == offsets
    assert read_offsets(write_offsets(offsets)) == offsets


def test_offsets_are_written_in_the_order_of_their_partitions() -> None:
    b, a10, a9 = TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)
    assert write_offsets({b: 1, a10: 2, a9: 3}) == b"0\n3\na 9 3\na 10 2\nb 0 1\n"


@pytest.mark.parametrize("line", ["a 0 9223372036854775808", "a 0 1_0", "a 2147483648 0"])
def test_a_number_that_is_none_to_kafka_is_corrupt(line: str) -> None:
    with pytest.raises(Corrupt, match=line):
        read_offsets(f"0\n1\n{line}\n".encode())


@pytest.mark.parametrize("line", ["2147483648 0", "0 9223372036854775808", "1_0 5"])
@pytest.mark.parametrize("read", [read_epochs, read_epoch_lines])
def test_an_epoch_that_is_none_to_kafka_is_corrupt(read: object, line: str) -> None:
    with pytest.raises(Corrupt, match=line):
        read(f"0\n1\n{line}\n".encode())  # type: ignore[operator]


@given(st.binary(max_size=40))
def test_any_bytes_are_a_checkpoint_or_corrupt(data: bytes) -> None:
    for read in (read_epochs, read_offsets):
        with suppress(Corrupt):
            read(b"0\n1\n" + data)
