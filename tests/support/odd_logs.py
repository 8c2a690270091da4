"""A log directory with every oddity of the golden logs, in topics of several partitions and of names that are hard to parse."""

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from golden_logs import broker_logs, legacy_logs, legacy_partitions, partitions
from logs_to_archive import cut_finer, set_checkpoint

from local_log.formats.batches import scan
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT, PARTITION_METADATA
from local_log.formats.header_layout import MAGIC_AT
from local_log.formats.partition_metadata import write_topic_id

COPIES: Mapping[str, str] = {
    "many.with-dots-0": "g-txn-0",
    "many.with-dots-1": "g-trimmed-0",
    "many.with-dots-2": "g-compacted-txn-0",
    "many.with-dots-3": "g-empty-0",
    "many.with-dots-4": "g-epochs-0",
    "_-.1-0-0": "g-mixed-0",
    "_-.1-0-1": "g-tiny-0",
}
"""Folders that are other golden ones under another name."""

_ONE_EPOCH = 3
"""Lines of a checkpoint of one leader epoch."""

TRIMMED_AT = 1234
"""The log start offset of `g-trimmed`."""


def odd_logs(folder: Path) -> Path:
    """The golden logs of a broker, cut finer, those of older messages, and copies; without what says whose broker it was."""
    legacy_logs(broker_logs(folder))
    for name in partitions():
        cut_finer(folder / name, 12)
    for copy, name in COPIES.items():
        shutil.copytree(folder / name, folder / copy)
    set_checkpoint(folder / LOG_START_OFFSET_CHECKPOINT, "many.with-dots-1", TRIMMED_AT)
    topics = sorted({name.rpartition("-")[0] for name in (*COPIES, *legacy_partitions())})
    for number, topic in enumerate(topics):
        for partition in folder.glob(f"{topic}-[0-9]"):
            (partition / PARTITION_METADATA).write_bytes(write_topic_id(f"odd{number:02}{'A' * 17}"))
    (folder / "meta.properties").unlink()
    for file in folder.glob("*/*.log"):
        _date(file)
    return folder


def _date(file: Path) -> None:
    """Lets a segment be as old as its greatest timestamp, as an archive takes it to be."""
    batches, _ = scan(file.read_bytes())
    written_ms = max(batches.max_timestamp.tolist(), default=0)
    if written_ms > 0:
        os.utime(file, ns=(written_ms * 1_000_000, written_ms * 1_000_000))


def oddities(folder: Path) -> dict[str, set[Any]]:
    """Which values the batches, segments and logs below a folder have, by what is looked at."""
    found = defaultdict[str, set[Any]](set)
    for file in sorted(folder.glob("*/*.log")):
        data, position = file.read_bytes(), 0
        found["is empty"].add(not data)
        while position < len(data):
            batches, end = scan(data, position)
            found["magic"] |= {data[at + MAGIC_AT] for at in batches.positions.tolist()}
            for what, values in _looked_at(batches):
                found[what] |= set(values.tolist())
            position = end
        aborted = file.with_suffix(".txnindex")
        found["has aborted transactions"].add(aborted.exists() and aborted.stat().st_size > 0)
    for checkpoint in folder.glob("*/leader-epoch-checkpoint"):
        found["has several leader epochs"].add(len(checkpoint.read_text().splitlines()) > _ONE_EPOCH)
    return dict(found)


def _looked_at(batches: Any) -> Iterator[tuple[str, Any]]:
    yield "codec", batches.codec
    yield "is emptied", batches.count == 0
    yield "is control", batches.is_control
    yield "is transactional", batches.is_transactional
    yield "has append time", batches.timestamp_type == 1
    yield "has a delete horizon", batches.delete_horizon_ms >= 0
    yield "is after a gap", batches.base_offset[1:] > batches.last_offset[:-1] + 1
