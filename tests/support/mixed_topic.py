"""A log directory with a topic of two partitions, whose records are what people write: text of any script, bytes, nothing."""

from pathlib import Path

from hand_made import batch, record

TOPIC = "mixed"
AT_MS = 1_700_000_000_000
BINARY = b"\x00\x01\xfe\xff"
HOSTILE = b"\x1b]0;owned\x07\x1b[2J\r\nfake line\x9b"
RECORDS: dict[int, tuple[tuple[bytes | None, bytes | None], ...]] = {
    0: (
        (b"customer-17", b'{"city": "K\xc3\xb6ln", "amount": 12}'),
        (b"customer-18", "注文番号4711を東京へ発送しました、ご確認ください".encode()),
        (BINARY, BINARY * 20),
        (b"customer-17", None),
    ),
    1: ((None, b"\x1b[31mred\x1b[0m"), (b"customer-17", HOSTILE.decode("latin-1").encode()), (b"", b"")),
}
"""Keys and values by partition; each record is a second later than the one before it."""


def log_dir(folder: Path) -> Path:
    """Writes the log directory."""
    for partition, records in RECORDS.items():
        log = folder / f"{TOPIC}-{partition}" / f"{0:020d}.log"
        log.parent.mkdir(parents=True)
        log.write_bytes(b"")
        for offset, (key, value) in enumerate(records):
            append(folder, partition, offset, key, value)
    return folder


def append(folder: Path, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
    """Writes one more record, with a header, and has the high watermark say so."""
    at_ms = AT_MS + 1000 * offset
    made = batch(
        record(key=key, value=value, headers=[(b"trace", b"a1"), (b"raw", BINARY)]),
        base_offset=offset, base_timestamp=at_ms, max_timestamp=at_ms,
    )  # fmt: skip
    with (folder / f"{TOPIC}-{partition}" / f"{0:020d}.log").open("ab") as log:
        log.write(made)
    marks = {**_marks(folder), f"{TOPIC} {partition}": offset + 1}
    lines = [f"{name} {end}" for name, end in marks.items()]
    (folder / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def _marks(folder: Path) -> dict[str, int]:
    file = folder / "replication-offset-checkpoint"
    lines = file.read_text().splitlines()[2:] if file.exists() else []
    return {name: int(end) for name, _, end in (line.rpartition(" ") for line in lines)}
