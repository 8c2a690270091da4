"""A broker with the same events in a topic for each codec, and an archive of what it no longer writes to."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import events  # beside this file
import real_kafka
from logs_to_archive import offload_all
from tiered_storage import wait_until  # beside this file

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from remote.archive import manifests
from remote.store.open import open_store

CODECS = ("none", "lz4", "zstd")


@dataclass(frozen=True)
class Filled:
    """What the contestants read: topics `bench-CODEC` of a broker, `records` long; the archive ends at `archived` of them."""

    address: str
    archive: str
    records: int
    record_bytes: float
    archived: dict[str, int]

    @staticmethod
    def topic(codec: str) -> str:
        """The topic whose batches are compressed so."""
        return f"bench-{codec}"


@contextmanager
def filled(out: Path, records: int) -> Iterator[Filled]:
    """A broker on loopback that ends with the block."""
    with real_kafka.broker(out / "broker", for_speed=True) as address:
        for codec in CODECS:
            segments = {} if codec == "none" else {"segment.bytes": str(16 << 20)}  # there is less of them
            events.fill(address, Filled.topic(codec), records, segments, codec)
        logs, archive = out / "broker" / "data", str(out / "archive")
        written = logs / HIGH_WATERMARK_CHECKPOINT
        wait_until(
            lambda: all(f"{Filled.topic(c)} 0 {records}\n" in written.read_text() for c in CODECS),
            "the broker does not write its high watermarks down",
        )
        store = open_store(archive)
        for codec in CODECS:
            offload_all(logs, store, only=f"{Filled.topic(codec)}-0")
        ends = {codec: next(iter(manifests(store, Filled.topic(codec)))).end_offset for codec in CODECS}
        size = sum(file.stat().st_size for file in (logs / f"{Filled.topic('none')}-0").glob("*.log"))
        yield Filled(address, archive, records, size / records, ends)
    shutil.rmtree(out)
