"""Reads every record of an archive in a folder, without kafka-tiering.

    pip install crc32c lz4 zstandard python-snappy
    python read_archive.py ARCHIVE-FOLDER TOPIC [PARTITION]         prints a JSON object for each record, in offset order

It reads plain and zstd-encoded segments, but no encrypted segments (AES-256-GCM) and no entries in pages (Parquet). It does not
show which transactions were aborted (`transaction_index`, `aborted_later`).
"""

import json
import struct
import sys
import zlib
from base64 import b64encode
from io import BytesIO
from pathlib import Path

import lz4.block
import snappy
import zstandard
from crc32c import crc32c


def newest_manifest(partition):
    body = min(partition.glob("manifest/*.json")).read_bytes()  # versions count down: the newest has the least name
    text, stamp = body.rsplit(b',"~crc32c":"', 1)
    assert int(stamp[:8], 16) == crc32c(text), f"{partition}: the newest manifest is damaged"
    return json.loads(body)


def segment_bytes(partition, entry):
    name, encoding = entry["log_name"], entry["encoding"]
    stored = (partition / "segments" / name).read_bytes()
    assert encoding in ("identity", "zstd"), f"{name} is encrypted"
    log = zstd_frames(stored) if encoding == "zstd" else stored  # each chunk is a zstd frame
    assert (len(log), crc32c(log)) == (entry["log_size"], entry["log_crc32c"]), f"{name} is damaged"
    return log


def zstd_frames(data):
    return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()


def snappy_blocks(data):  # what Kafka's Java client writes: a header of 16 bytes, then blocks with their lengths
    read, out = BytesIO(data[16:]).read, b""
    while length := read(4):
        out += snappy.decompress(read(int.from_bytes(length, "big")))
    return out


def lz4_frame(data):  # block by block: clients of messages of magic 0 wrote a wrong checksum into the frame's header
    flags, largest = data[4], 1 << 8 + 2 * (data[5] >> 4 & 7)
    read, out = BytesIO(data[15 if flags & 8 else 7 :]).read, b""
    while size := int.from_bytes(read(4), "little"):
        block = read(size & 0x7FFFFFFF)
        out += block if size >> 31 else lz4.block.decompress(block, uncompressed_size=largest)
        read(4 if flags & 16 else 0)
    return out


def decompress(codec, data):
    if codec == 2 and not data.startswith(b"\x82SNAPPY\0"):
        return snappy.decompress(data)
    return {0: bytes, 1: lambda gzip: zlib.decompress(gzip, 31), 2: snappy_blocks, 3: lz4_frame, 4: zstd_frames}[codec](data)


def varint(read):
    value = shift = 0
    while (byte := read(1)[0]) > 127:
        value, shift = value | (byte & 127) << shift, shift + 7
    value |= byte << shift
    return value >> 1 ^ -(value & 1)


def sized(read, length):
    return None if length < 0 else read(length)


def batch_records(data):
    base, _, _, _, crc, attributes, _, base_ms, max_ms, _, _, sequence, count = struct.unpack_from(">qiibIhiqqqhii", data)
    assert crc32c(data[21:]) == crc, f"the batch at offset {base} is damaged"
    read = BytesIO(decompress(attributes & 7, data[61:])).read
    for _ in range(count):
        varint(read), read(1)  # the record's length and its attributes
        delta_ms, delta = varint(read), varint(read)
        key, value = sized(read, varint(read)), sized(read, varint(read))
        headers = [(sized(read, varint(read)), sized(read, varint(read))) for _ in range(varint(read))]
        timestamp = max_ms if attributes & 8 else base_ms + delta_ms
        number = -1 if sequence < 0 else sequence + delta & 0x7FFFFFFF
        yield base + delta, timestamp, number, bool(attributes & 32), key, value, headers


def message_records(data, outer_ms=None):
    read = BytesIO(data).read
    offset, _, crc, magic, attributes = struct.unpack(">qiIbb", read(18))
    assert zlib.crc32(data[16:]) == crc, f"the message at offset {offset} is damaged"
    own_ms = int.from_bytes(read(8), "big", signed=True) if magic else -1
    key, value = (sized(read, int.from_bytes(read(4), "big", signed=True)) for _ in range(2))
    if not attributes & 7:
        yield offset, own_ms if outer_ms is None else outer_ms, -1, False, key, value, []
        return
    outer_ms = own_ms if attributes & 8 else outer_ms
    inner = [record for data in frames(decompress(attributes & 7, value)) for record in message_records(data, outer_ms)]
    shift = offset - inner[-1][0] if magic else 0  # inner offsets of magic 1 are relative, and the outer one is the last
    yield from ((first + shift, *rest) for first, *rest in inner)


def frames(log):  # batches and messages both begin with an offset (8 bytes) and their length (4)
    read = BytesIO(log).read
    while head := read(12):
        yield head + read(int.from_bytes(head[8:], "big"))


def records(partition):
    manifest = newest_manifest(partition)
    assert not manifest["pages"], "older entries are in pages, which are Parquet"
    expected = manifest["log_start_offset"]
    for entry in manifest["entries"]:
        for data in frames(segment_bytes(partition, entry)):
            for record in batch_records(data) if data[16] == 2 else message_records(data):
                if record[0] >= expected:  # segments may overlap: each offset once
                    expected = record[0] + 1
                    yield record


def main(folder, topic, number="0"):
    for topic_id in sorted((Path(folder) / topic).iterdir()):
        for record in records(topic_id / number):
            row = zip(("offset", "timestamp", "sequence", "control", "key", "value", "headers"), record, strict=True)
            print(json.dumps(dict(row), default=lambda data: b64encode(data).decode()))


if __name__ == "__main__":
    main(*sys.argv[1:])
