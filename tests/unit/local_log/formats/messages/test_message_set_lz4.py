"""What lz4 frames of old clients look like, and which of them Kafka refuses."""

from pathlib import Path

import lz4.frame
import pytest
from golden_logs import segments
from hand_made import LZ4, message, wrapper
from message_sets import rows, wrong

from local_log.formats.messages.message_set import scan_messages


def broken_header(frame: bytes) -> bytes:
    at = 6 + (8 if frame[4] & 0x08 else 0)
    return frame[:at] + bytes([frame[at] ^ 0x5A]) + frame[at + 1 :]


def test_kafka_itself_writes_magic_0_with_a_wrong_lz4_header(legacy: Path) -> None:
    _, buffer = segments(legacy, "g-v0-lz4-0")[0]
    value_at = buffer.index(b"\x04\x22\x4d\x18")
    with pytest.raises(RuntimeError, match="headerChecksum_invalid"):
        lz4.frame.decompress(buffer[value_at : int(scan_messages(buffer)[0].end[0])])


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("block_checksum", [False, True])
@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("store_size", [False, True])
def test_the_checksum_of_an_lz4_header_does_not_matter_in_magic_0_and_does_in_magic_1(
    block_size: int, block_checksum: bool, content_checksum: bool, store_size: bool
) -> None:
    for magic, value in ((0, b"v" * 300_000), (1, b"v" * 300_000)):
        frame = lz4.frame.compress(
            message(magic, value),
            block_size=block_size,
            block_linked=False,
            block_checksum=block_checksum,
            content_checksum=content_checksum,
            store_size=store_size,
        )
        assert rows(wrapper(magic, LZ4, section=frame))[0][4] == value
        broken = wrapper(magic, LZ4, section=broken_header(frame))
        if magic == 0:
            assert rows(broken)[0][4] == value
        else:
            assert "lz4 frame does not inflate" in wrong(broken)


@pytest.mark.parametrize(("at", "byte"), [(0, 0x05), (4, 0x61), (4, 0x62), (4, 0x40), (4, 0xE0), (5, 0x30), (5, 0x41), (5, 0xC0)])
def test_an_lz4_header_that_kafka_refuses_is_corrupt_in_magic_0_too(at: int, byte: int) -> None:
    frame = bytearray(lz4.frame.compress(message(0), block_linked=False, store_size=False))
    frame[at] = byte
    assert "none of Kafka's" in wrong(wrapper(0, LZ4, section=bytes(frame)))


@pytest.mark.parametrize("magic", [0, 1])
def test_an_lz4_frame_cut_anywhere_is_corrupt(magic: int) -> None:
    frame = lz4.frame.compress(message(magic, b"v" * 100), block_linked=False, store_size=True)
    for cut in range(len(frame)):
        assert wrong(wrapper(magic, LZ4, section=frame[:cut]))
