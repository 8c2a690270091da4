"""partition.metadata: the topic's id."""

from pathlib import Path

import pytest

from local_log.errors import Corrupt
from local_log.formats.partition_metadata import ZERO_TOPIC_ID, read_topic_id, write_topic_id


def test_every_golden_partition_has_the_id_of_its_topic(broker: Path, partition: str) -> None:
    text = (broker / partition / "partition.metadata").read_text()
    assert text.encode() == write_topic_id(read_topic_id(text.encode()))


def test_a_topic_id_may_be_all_zeros() -> None:
    assert read_topic_id(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n") == ZERO_TOPIC_ID


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0",
        b"version: 0\ntopic_id: ",
        b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: AAAAAAAAAAA\xffAAAAAAAAAA",
        b"topic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_what_is_no_partition_metadata_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        read_topic_id(data)


def test_a_file_cut_at_any_byte_is_corrupt(broker: Path) -> None:
    whole = (broker / "g-txn-0" / "partition.metadata").read_bytes()
    for cut in range(len(whole)):
        with pytest.raises(Corrupt):
            read_topic_id(whole[:cut])
