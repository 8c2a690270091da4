"""Reads every record of an archive that lies in a folder, without kafka-tiering: the format, in 150 lines.

    pip install crc32c lz4 zstandard python-snappy
    python read_archive.py ARCHIVE-FOLDER TOPIC [PARTITION]         prints a JSON object for each record, in the order of offsets

It reads plain and zstd-encoded segments. It does not read encrypted segments (AES-256-GCM) and entries in
pages (Parquet), and does not say which transactions were aborted (`transaction_index`, `aborted_later`).
"""

import json
import struct
import sys
import zlib
from base64 import b64decode, b64encode
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
    stored = (partition / "segments" / entry["log_name"]).read_bytes()
    log = stored if entry["encoding"] == "identity" else b"".join(chunks(stored, entry))
    assert (len(log), crc32c(log)) == (entry["log_size"], entry["log_crc32c"]), f"{entry['log_name']} is damaged"
    return log


def chunks(stored, entry):
    assert entry["encoding"] == "zstd", f"{entry['log_name']} is encrypted"
    index = b64decode(entry["encoded"]["chunk_index"])
    _, size, total, shortest, last, width = struct.unpack_from(">BIQIIB", index)
    count, at = -(-total // size), 0
    for n in range(count):
        longer = int.from_bytes(index[22 + n * width : 22 + (n + 1) * width], "big")
        length = last if n == count - 1 else shortest + longer
        yield zstandard.ZstdDecompressor().decompress(stored[at : at + length])
        at += length


def inflate(codec, data):
    if codec == 0:
        return data
    if codec == 1:
        return zlib.decompress(data, 31)
    if codec == 2:
        return xerial(data) if data[:8] == b"\x82SNAPPY\0" else snappy.decompress(data)
    if codec == 3:
        return lz4_frame(data)
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def xerial(data):
    out, at = [], 16
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        out.append(snappy.decompress(data[at + 4 : at + 4 + length]))
        at += 4 + length
    return b"".join(out)


def lz4_frame(data):  # block by block: clients of messages of magic 0 wrote a wrong checksum into the frame's header
    flags, largest = data[4], 1 << 8 + 2 * (data[5] >> 4 & 7)
    out, at = [], 7 + (8 if flags & 8 else 0)
    while size := int.from_bytes(data[at : at + 4], "little"):
        block = data[at + 4 : at + 4 + (size & 0x7FFFFFFF)]
        out.append(block if size >> 31 else lz4.block.decompress(block, uncompressed_size=largest))
        at += 4 + len(block) + (4 if flags & 16 else 0)
    return b"".join(out)


def varint(data, at):
    value = shift = 0
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value >> 1 ^ -(value & 1), at


def field(data, at):
    length, at = varint(data, at)
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def batch_records(data):
    base, _, _, _, crc, attributes, _, base_ms, max_ms, _, _, sequence, count = struct.unpack_from(">qiibIhiqqqhii", data)
    assert crc32c(data[21:]) == crc, f"the batch at offset {base} is damaged"
    body, at = inflate(attributes & 7, data[61:]), 0
    for _ in range(count):
        _, at = varint(body, at)
        delta_ms, at = varint(body, at + 1)
        delta, at = varint(body, at)
        key, at = field(body, at)
        value, at = field(body, at)
        number, at = varint(body, at)
        headers = []
        for _ in range(number):
            name, at = field(body, at)
            content, at = field(body, at)
            headers.append((name, content))
        number_in_producer = -1 if sequence < 0 else sequence + delta & 0x7FFFFFFF
        yield (
            base + delta,
            max_ms if attributes & 8 else base_ms + delta_ms,
            number_in_producer,
            bool(attributes & 32),
            key,
            value,
            headers,
        )


def message_records(data, outer_ms=None):
    offset, _, crc, magic, attributes = struct.unpack_from(">qiIbb", data)
    assert zlib.crc32(data[16:]) == crc, f"the message at offset {offset} is damaged"
    at, stamp = (26, struct.unpack_from(">q", data, 18)[0]) if magic else (18, -1)
    (length,) = struct.unpack_from(">i", data, at)
    key = None if length < 0 else data[at + 4 : at + 4 + length]
    at += 4 + max(0, length)
    (length,) = struct.unpack_from(">i", data, at)
    value = None if length < 0 else data[at + 4 : at + 4 + length]
    if not attributes & 7:
        yield offset, stamp if outer_ms is None else outer_ms, -1, False, key, value, []
        return
    inner = [
        r for m in entries_of(inflate(attributes & 7, value)) for r in message_records(m, stamp if attributes & 8 else outer_ms)
    ]
    shift = offset - inner[-1][0] if magic else 0  # of magic 1 the inner offsets are relative, and the wrapper has the last
    yield from ((r[0] + shift, *r[1:]) for r in inner)


def entries_of(log):
    at = 0
    while at < len(log):
        end = at + 12 + struct.unpack_from(">i", log, at + 8)[0]
        yield log[at:end]
        at = end


def records(partition):
    manifest, expected = newest_manifest(partition), 0
    assert not manifest["pages"], "its older entries lie in pages, which are Parquet"
    for entry in manifest["entries"]:
        for data in entries_of(segment_bytes(partition, entry)):
            for record in batch_records(data) if data[16] == 2 else message_records(data):
                if record[0] >= max(expected, manifest["log_start_offset"]):  # of segments that overlap, each offset once
                    expected = record[0] + 1
                    yield record


def main(folder, topic, number="0"):
    text = lambda data: None if data is None else b64encode(data).decode()  # noqa: E731
    for topic_id in sorted((Path(folder) / topic).iterdir()):
        for offset, timestamp, sequence, control, key, value, headers in records(topic_id / number):
            row = {"offset": offset, "timestamp": timestamp, "sequence": sequence, "control": control, "key": text(key)}
            print(json.dumps(row | {"value": text(value), "headers": [[text(k), text(v)] for k, v in headers]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
