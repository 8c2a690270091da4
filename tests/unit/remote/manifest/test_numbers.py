"""Numbers of the archive's JSON that nothing could be computed from."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from made_manifests import PATH, entry, manifest, paged

from local_log.errors import Corrupt
from local_log.formats.checkpoints import EpochEntry
from remote.archive import is_archive
from remote.keys import ARCHIVE
from remote.manifest import pins
from remote.manifest.codec import decode, encode
from remote.manifest.model import Deleting, PendingWrite, WriteMark
from remote.manifest.pages import decode as decode_page
from remote.manifest.pages import encode as encode_page
from remote.manifest.pages import ref_of
from remote.manifest.segment_entry import EncodingInfo
from remote.manifest.stamped_json import stamped
from remote.manifest.write_record import read_decision
from remote.transforms.chunk_index import CHUNK_BYTES_MAX, read_chunk_index

KEY = PATH.manifest(1)
MARK = WriteMark("w", "b" * 32, 2)
ENCODED = EncodingInfo("", (10,), 100, 1, 10, 2)
FULL = manifest(
    entry(40, 50, encoded=ENCODED, min_timestamp_ms=5, encoding="zstd"),
    entry(60, 70),
    pages=(paged(entry(20, 30), entry(30, 40)),),
    deleting=(Deleting(entry(0, 20), 7),),
    log_start_offset=20,
    leader_epochs=(EpochEntry(0, 0),),
    local_log_start_offsets={"a": 5},
    deleted_at_ms=1,
    written=MARK,
    pending=PendingWrite(PATH.topic, PATH.topic_id, MARK, (entry(70, 80),), (EpochEntry(0, 0),)),
)
HUGE = (2**63, 2**64, 2**100, 10**400, -(2**63) - 1, -(10**400))
NEGATIVE = (-2, -(2**40))
TIMES_OF_RECORDS = {"max_timestamp_ms", "min_timestamp_ms"}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where numbers stand."""
    if type(value) is int:
        yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*at, key))


def with_number(value: Any, at: tuple[Any, ...], number: int) -> Any:
    """The same with another number there."""
    changed = json.loads(json.dumps(value))
    within = changed
    for key in at[:-1]:
        within = within[key]
    within[at[-1]] = number
    return changed


def assert_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt) as raised:
        decode(body, KEY)
    assert raised.value.file == KEY
    assert len(str(raised.value)) < 600


def test_no_number_of_a_manifest_is_beyond_64_bits_and_no_offset_size_or_count_is_negative() -> None:
    value = json.loads(encode(FULL))
    del value["~crc32c"]
    found = [at for at in places(value) if at[0] != "format"]
    assert len(found) > 100
    for at in found:
        for number in HUGE:
            assert_corrupt(stamped(with_number(value, at, number)))
        if at[-1] not in TIMES_OF_RECORDS and "bounds" not in at:
            for number in NEGATIVE:
                assert_corrupt(stamped(with_number(value, at, number)))


def test_a_time_of_a_commit_is_of_a_year_that_calendars_have() -> None:
    value = json.loads(encode(FULL))
    del value["~crc32c"]
    assert decode(stamped(value | {"committed_at_ms": 253_402_300_799_999}), KEY)
    for name in ("committed_at_ms", "data_committed_at_ms"):
        assert_corrupt(stamped(value | {name: 253_402_300_800_000}))


def test_a_partition_is_a_number_of_32_bits() -> None:
    value = json.loads(encode(FULL))
    del value["~crc32c"]
    assert_corrupt(stamped(value | {"partition": 2**31}))


@pytest.mark.parametrize("fields", [{"log_size": -5}, {"record_count": -5}, {"log_crc32c": 2**32}, {"copied_at_ms": 2**62}])
def test_a_page_with_such_a_number_is_corrupt(fields: dict[str, int]) -> None:
    below = [entry(0, 10, **fields)]
    body = encode_page(0, below)
    ref = ref_of(0, below, body, "a" * 32)
    with pytest.raises(Corrupt, match=next(iter(fields))):
        decode_page(body, ref, KEY)


def test_a_pin_and_a_write_s_record_with_such_a_number_are_corrupt() -> None:
    store = MemoryStore()
    pin = pins.create(store, PATH, "me", 1, 0, 5, 1_000, FixedClock(), CountingIds("b"))
    value = json.loads(store.objects[PATH.pin(pin.id)])
    del value["~crc32c"]
    store.objects[PATH.pin(pin.id)] = stamped(value | {"start": 10**400})
    assert [d.file for d in pins.pins_of(store, PATH, 0).damaged] == [PATH.pin(pin.id)]
    range_ = [PATH.topic, PATH.topic_id, 0, 0, 5]
    record = {"format": {"major": 1, "minor": 1}, "outcome": "committed", "decided_at_ms": 5, "by": "me", "ranges": [range_]}
    store.objects["record"] = stamped(record)
    assert read_decision(store, "record")
    for wrong in ({"decided_at_ms": 10**400}, {"ranges": [[*range_[:4], 2**63]]}, {"ranges": [[*range_[:2], 2**31, 0, 5]]}):
        store.objects["record"] = stamped(record | wrong)
        with pytest.raises(Corrupt, match="record"):
            read_decision(store, "record")


@pytest.mark.parametrize("major", [2**63, 10**400, -1, True, None, "1", 1.0])
def test_an_archive_of_a_format_that_is_no_such_number_is_corrupt(major: object) -> None:
    store = MemoryStore()
    store.objects[ARCHIVE] = json.dumps({"format": {"major": major, "minor": 0}}).encode()
    with pytest.raises(Corrupt) as raised:
        is_archive(store)
    assert raised.value.file == ARCHIVE
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("chunk_bytes", [0, 1, CHUNK_BYTES_MAX, CHUNK_BYTES_MAX + 1, 2**32 - 1])
@pytest.mark.parametrize("size", [0, 2**20 + 1, 2**46 + 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("width", [0, 4, 5, 255])
def test_a_chunk_index_of_such_sizes_is_corrupt(chunk_bytes: int, size: int, width: int) -> None:
    header = struct.pack(">BIQIIB", 1, chunk_bytes, size, 2**32 - 1, 2**32 - 1, width)
    with pytest.raises(Corrupt):
        read_chunk_index(header + bytes(100))
    with pytest.raises(Corrupt):
        read_chunk_index(header)
