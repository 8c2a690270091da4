"""Each kind of metadata record that speaks of topics, by what Kafka's own classes read in the same bytes."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_logs import live, metadata_log

from local_log.errors import Corrupt
from local_log.formats.batches import decode, scan
from local_log.formats.metadata_records import (
    ConfigSet,
    LeaderNamed,
    MetadataRecord,
    TopicMade,
    TopicRemoved,
    TransactionMark,
    read_metadata_record,
)

FOLDER = "__cluster_metadata-0"
MARKS = {"BEGIN_TRANSACTION_RECORD": TransactionMark.begin, "END_TRANSACTION_RECORD": TransactionMark.end}


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], bytes]:
    """The value of every record of the golden metadata log, by its file and offset."""
    folder = metadata_log(tmp_path_factory.mktemp("metadata")) / FOLDER
    return {(file.name, offset): value for file in sorted(folder.iterdir()) for offset, value in values_of(file)}


def values_of(file: Path) -> Iterator[tuple[int, bytes]]:
    buffer = file.read_bytes() if file.suffix in (".log", ".checkpoint") else b""
    batches, _ = scan(buffer)
    for _, records in decode(buffer, batches[~batches.header["attributes"].astype(bool)]) if len(batches) else ():
        yield from zip(records.column("offset").to_pylist(), records.column("value").to_pylist(), strict=True)


def as_kafka_reads(kind: str, fields: dict[str, Any] | None) -> MetadataRecord | None:
    match kind, fields:
        case "TOPIC_RECORD", {"name": name, "topicId": topic_id}:
            return TopicMade(name, topic_id)
        case "REMOVE_TOPIC_RECORD", {"topicId": topic_id}:
            return TopicRemoved(topic_id)
        case "PARTITION_RECORD" | "PARTITION_CHANGE_RECORD", {"topicId": topic_id, "partitionId": number, "leader": leader}:
            return LeaderNamed(topic_id, number, leader)
        case "CONFIG_RECORD", {"resourceType": resource_type, "resourceName": resource, "name": name, "value": value}:
            return ConfigSet(resource_type, resource, name, value)
    return MARKS.get(kind)


def test_every_record_is_what_kafka_reads(values: dict[tuple[str, int], bytes]) -> None:
    expected = {(file, offset): as_kafka_reads(kind, fields) for file, offset, kind, fields in live(FOLDER)["records"]}
    assert {of: read_metadata_record(value) for of, value in values.items()} == expected


def test_a_record_cut_at_any_byte_is_corrupt_or_says_as_much(values: dict[tuple[str, int], bytes]) -> None:
    for value in values.values():
        whole = read_metadata_record(value)
        for size in range(len(value)):
            try:
                assert read_metadata_record(value[:size]) in (whole, None)
            except Corrupt:
                continue


@pytest.mark.parametrize("value", [b"\x02\x02\x00", b"\x01\x02\x01", b"\x01\x04\x01", b"\x01\x03\x03", b"\x01\x05\x03"])
def test_a_record_of_a_newer_form_is_refused_rather_than_guessed_at(value: bytes) -> None:
    with pytest.raises(Corrupt, match="upgrade kafka-tiering"):
        read_metadata_record(value + bytes(64))


def test_a_setting_without_a_value_is_deleted() -> None:
    assert read_metadata_record(b"\x01\x04\x00\x02\x02t\x02n\x00\x00") == ConfigSet(2, "t", "n", None)


def test_a_leader_stands_among_other_tagged_fields() -> None:
    topic_id = base64.urlsafe_b64encode(bytes(16)).decode().rstrip("=")
    isr, leader = b"\x00\x05\x02\x00\x00\x00\x07", b"\x01\x04\xff\xff\xff\xff"
    value = b"\x01\x05\x02\x00\x00\x00\x09" + bytes(16) + b"\x02" + isr + leader
    assert read_metadata_record(value) == LeaderNamed(topic_id, 9, -1)
    assert read_metadata_record(value[: -len(leader)].replace(b"\x02" + isr, b"\x01" + isr)) is None


def test_a_text_that_is_no_utf_8_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="UTF-8"):
        read_metadata_record(b"\x01\x02\x00\x02\xff" + bytes(17))
