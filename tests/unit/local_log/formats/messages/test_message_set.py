"""Messages of magic 0 and 1: what Kafka reads in the golden ones, and what is read in those that hold others."""

import struct
from pathlib import Path

import numpy as np
import pytest
from golden_logs import expected_batches, segments
from hand_made import APPEND_TIME, GZIP, SNAPPY, decoded, message, wrapper, xerial
from message_sets import CODECS, rows, with_crc

from local_log.formats.messages.message_set import scan_messages
from local_log.formats.record_batch.batch_v2 import check_crcs
from local_log.formats.record_batch.columns import HEADERS_TYPE
from local_log.formats.record_batch.projection import Projection


def test_every_header_field_is_what_kafka_reads(legacy: Path, legacy_partition: str) -> None:
    lines = expected_batches(legacy_partition)
    seen = 0
    for segment, buffer in segments(legacy, legacy_partition):
        of_segment = {line["position"]: line for line in lines if line["segment"] == segment and line["magic"] < 2}
        pos = 0
        while pos in of_segment:
            batches, pos = scan_messages(buffer, pos)
            check_crcs(buffer, batches)
            columns = {
                "size": batches.size,
                "magic": batches.header["magic"],
                "base_offset": batches.base_offset,
                "last_offset": batches.last_offset,
                "timestamp_type": batches.timestamp_type,
                "max_timestamp": batches.max_timestamp,
                "leader_epoch": batches.header["partition_leader_epoch"],
                "producer_id": batches.header["producer_id"],
                "producer_epoch": batches.header["producer_epoch"],
                "base_sequence": batches.header["base_sequence"],
                "last_sequence": batches.last_sequence,
                "transactional": batches.is_transactional,
                "control": batches.is_control,
            }
            for name, column in columns.items():
                assert column.tolist() == [of_segment[p][name] for p in batches.positions.tolist()], name
            assert (batches.delete_horizon_ms == -1).all()
            assert batches.next_offset == of_segment[int(batches.positions[-1])]["last_offset"] + 1
            seen += len(batches)
            if legacy_partition == "g-upgraded-0":
                pos = next((p for p in sorted(of_segment) if p >= pos), pos)
    assert seen == sum(line["magic"] < 2 for line in lines)


def test_a_message_alone_is_a_batch_of_one(legacy: Path) -> None:
    for name in ("g-v0-none-0", "g-v1-none-create-0"):
        for _, buffer in segments(legacy, name):
            batches, stop = scan_messages(buffer)
            assert stop == len(buffer)
            assert (batches.count == 1).all()
            assert (batches.base_offset == batches.last_offset).all()


def test_only_the_wanted_columns_come(legacy: Path) -> None:
    _, buffer = segments(legacy, "g-v1-lz4-create-0")[0]
    batches, _ = scan_messages(buffer)
    whole = decoded(buffer, batches, Projection(timestamp_type=True))
    assert whole.schema.names == ["offset", "timestamp", "key", "value", "headers", "timestamp_type"]
    assert whole.column("headers").type == HEADERS_TYPE
    assert set(map(tuple, whole.column("headers").to_pylist())) == {()}
    for want, names in [
        (Projection(value=False, headers=False), ["offset", "timestamp", "key"]),
        (Projection(key=False, headers=False), ["offset", "timestamp", "value"]),
        (Projection(key=False, value=False, headers=False), ["offset", "timestamp"]),
        (Projection(key=False, value=False, headers=False, timestamp_type=True), ["offset", "timestamp", "timestamp_type"]),
    ]:
        assert decoded(buffer, batches, want).equals(whole.select(names))


def test_any_selection_of_messages_decodes_to_its_records(legacy: Path) -> None:
    _, buffer = segments(legacy, "g-v0-snappy-0")[0]
    batches, _ = scan_messages(buffer)
    whole = decoded(buffer, batches).to_pylist()
    picked = np.arange(len(batches)) % 3 == 1
    expected = [r for r, keep in zip(whole, np.repeat(picked, batches.count), strict=True) if keep]
    assert decoded(buffer, batches[picked]).to_pylist() == expected


@pytest.mark.parametrize("magic", [0, 1])
def test_null_and_empty_keys_and_values_stay_apart(magic: int) -> None:
    fields = [(None, None), (b"", b""), (b"k", None), (None, b"v"), (b"", b"v"), (b"key", b"value")]
    buffer = b"".join(message(magic, value, key=key, offset=n) for n, (key, value) in enumerate(fields))
    assert [row[3:] for row in rows(buffer)] == fields
    assert [row[3:] for row in rows(wrapper(magic, GZIP, buffer, offset=5))] == fields


def test_magic_0_has_no_timestamps_and_no_type_of_them() -> None:
    assert rows(message(0, attributes=APPEND_TIME)) == [(0, -1, -1, None, b"value")]
    batches, _ = scan_messages(message(0, attributes=APPEND_TIME))
    assert (batches.max_timestamp.tolist(), batches.timestamp_type.tolist()) == ([-1], [-1])


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_magic_0_are_absolute_gaps_and_all(codec: int) -> None:
    buffer = wrapper(0, codec, *(message(0, offset=n) for n in (70, 71, 75)), offset=75)
    batches, _ = scan_messages(buffer)
    assert (batches.base_offset.tolist(), batches.last_offset.tolist(), batches.count.tolist()) == ([70], [75], [3])
    assert [row[0] for row in rows(buffer)] == [70, 71, 75]


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_magic_1_end_at_the_wrapper_s(codec: int) -> None:
    buffer = wrapper(1, codec, *(message(1, offset=n) for n in (0, 1, 5)), offset=75)
    batches, _ = scan_messages(buffer)
    assert (batches.base_offset.tolist(), batches.last_offset.tolist(), batches.count.tolist()) == ([70], [75], [3])
    assert [row[0] for row in rows(buffer)] == [70, 71, 75]


def test_inner_offsets_of_magic_1_that_compaction_left_start_where_they_did() -> None:
    buffer = wrapper(1, GZIP, message(1, offset=3), message(1, offset=5), offset=75)
    assert [row[0] for row in rows(buffer)] == [73, 75]
    assert scan_messages(buffer)[0].base_offset.tolist() == [73]


def test_a_wrapper_of_offset_0_has_its_inner_offsets_as_they_are() -> None:
    assert [row[0] for row in rows(wrapper(1, GZIP, message(1, offset=0), message(1, offset=1), offset=0))] == [0, 1]


def test_offsets_as_large_as_int64_do_not_overflow() -> None:
    last = 2**63 - 1
    assert [row[0] for row in rows(wrapper(1, GZIP, message(1, offset=0), message(1, offset=1), offset=last))] == [last - 1, last]
    assert rows(message(0, offset=last))[0][0] == last


def test_inner_messages_have_times_of_their_own_unless_the_broker_set_the_wrapper_s() -> None:
    inner = [message(1, offset=n, timestamp=10 * n) for n in range(3)]
    assert [row[1:3] for row in rows(wrapper(1, GZIP, *inner, offset=2, timestamp=20))] == [(0, 0), (10, 0), (20, 0)]
    appended = wrapper(1, GZIP, *inner, offset=2, timestamp=99, attributes=APPEND_TIME)
    assert [row[1:3] for row in rows(appended)] == [(99, 1)] * 3
    assert [row[1:3] for row in rows(message(1, timestamp=99, attributes=APPEND_TIME))] == [(99, 1)]


def test_an_inner_message_of_magic_0_keeps_being_without_a_time() -> None:
    mixed = wrapper(1, GZIP, message(0, offset=0), message(1, offset=1), offset=1, timestamp=99, attributes=APPEND_TIME)
    assert [row[:2] for row in rows(mixed)] == [(0, -1), (1, 99)]


def test_a_wrapper_s_key_is_nobody_s() -> None:
    assert rows(wrapper(0, GZIP, message(0), key=b"ignored")) == [(0, -1, -1, None, b"value")]


def test_snappy_is_read_in_both_framings() -> None:
    inner = message(1, b"a" * 50) + message(1, b"b", offset=1)
    section = xerial(inner[:60], inner[60:])
    assert rows(wrapper(1, SNAPPY, section=section, offset=1)) == rows(wrapper(1, SNAPPY, inner, offset=1))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_last_inner_message_that_is_cut_is_not_there(magic: int) -> None:
    cut = message(magic, offset=1)[:-1]
    assert [row[0] for row in rows(wrapper(magic, GZIP, message(magic), cut, offset=0))] == [0]


def test_bytes_after_the_value_are_nobody_s() -> None:
    whole = bytearray(message(0) + b"rest")
    whole[8:12] = struct.pack(">i", len(whole) - 12)
    assert [row[4] for row in rows(wrapper(0, GZIP, with_crc(whole)))] == [b"value"]
    assert [row[4] for row in rows(with_crc(whole))] == [b"value"]
