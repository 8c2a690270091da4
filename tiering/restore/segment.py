"""Writes the files of one segment into the folder of a partition that is being restored.

A file whose size and CRC-32C are right is kept, every other file is written again. After a crash, only missing or different
files are downloaded.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from local_log.disk import WritableDisk, has_content
from local_log.formats.filenames import LOG, offset_file
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index
from local_log.formats.primitives import Buffer
from remote.keys import PartitionPath
from remote.manifest.segment_entry import ABORTED_LATER, OFFSET_INDEX, TIME_INDEX
from remote.segment.download import CutLog, file_names, read_part, whole_log
from remote.segment.stitch import Link
from remote.segment_bytes import SegmentBytes

_ALWAYS = (OFFSET_INDEX, TIME_INDEX)
"""These files exist even if they are empty; an empty transaction index or snapshot has no file."""


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A segment that is durable in its folder: the names of its files, its end offset, the bytes that were downloaded.

    `aborted` are the aborted transactions with records here whose marker is in a later segment.
    """

    names: tuple[str, ...]
    end_offset: int
    bytes: int
    is_new: bool
    aborted: tuple[AbortedTxn, ...]


def place_segment(disk: WritableDisk, folder: str, source: SegmentBytes, path: PartitionPath, link: Link) -> PlacedSegment:
    """Writes the segment's files into the folder. Raises Corrupt (its objects are damaged), Unavailable, Invalid, Unreadable."""
    aborted = read_txn_index(read_part(source, path, link.entry, ABORTED_LATER))
    return (_place_whole if link.is_whole else _place_cut)(disk, folder, source, path, link, aborted)


def _place_whole(
    disk: WritableDisk, folder: str, source: SegmentBytes, path: PartitionPath, link: Link, aborted: tuple[AbortedTxn, ...]
) -> PlacedSegment:
    entry = link.entry
    log = f"{folder}/{offset_file(entry.base_offset, LOG)}"
    downloaded = 0
    is_new = not has_content(disk, log, entry.log_size, entry.log_crc32c)
    if is_new:
        write_file(disk, log, whole_log(source, path, entry))
        downloaded += entry.log_size
    disk.sync(log)
    names = [offset_file(entry.base_offset, LOG)]
    for part, name in file_names(entry).items():
        where = entry.aux_ranges.get(part)
        if where is None and part not in _ALWAYS:
            continue
        size, crc = (where.end - where.start, where.crc32c) if where else (0, 0)
        if not has_content(disk, f"{folder}/{name}", size, crc):
            write_file(disk, f"{folder}/{name}", [read_part(source, path, entry, part)])
            downloaded += size
        disk.sync(f"{folder}/{name}")
        names.append(name)
    return PlacedSegment(tuple(names), entry.end_offset, downloaded, is_new, aborted)


def _place_cut(
    disk: WritableDisk, folder: str, source: SegmentBytes, path: PartitionPath, link: Link, aborted: tuple[AbortedTxn, ...]
) -> PlacedSegment:
    """Writes a part of a segment. An existing log file is compared with the computed content first."""
    log = f"{folder}/{offset_file(link.start, LOG)}"
    cut = CutLog(source, path, link)
    is_new = not disk.exists(log)
    if is_new:
        write_file(disk, log, cut.parts())
    else:
        for _ in cut.parts():
            pass
        if not has_content(disk, log, cut.size, cut.crc32c):
            is_new = True
            write_file(disk, log, cut.parts())
    end = link.end if link.end == link.entry.end_offset else cut.end_offset
    if not cut.size:
        disk.delete(log)
        return PlacedSegment((), end, link.entry.log_size, is_new, aborted)
    disk.sync(log)
    names = [offset_file(link.start, LOG)]
    for name, body in cut.files().items():
        names.append(name)
        write_file(disk, f"{folder}/{name}", [body])
        disk.sync(f"{folder}/{name}")
    return PlacedSegment(tuple(names), end, link.entry.log_size, is_new, aborted)


def write_file(disk: WritableDisk, file: str, parts: Iterable[Buffer]) -> None:
    """Replaces the content of a file."""
    size = 0
    disk.write(file, 0, b"")
    for part in parts:
        disk.write(file, size, bytes(part))
        size += len(part)
    disk.truncate(file, size)
