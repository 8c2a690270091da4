"""Faults where damage is to be noticed."""

from local_log.formats.chunks import Chunk
from remote.scrub.deep import DeepScrub
from remote.scrub.steps import ScrubbedSegment
from remote.segment import download
from simulated.mutants.registry import mutant


@mutant
def archive_batches_without_checking_them() -> None:
    Chunk.check = lambda self: None  # type: ignore[method-assign]


@mutant
def scrub_without_reading_segments() -> None:
    DeepScrub.read = lambda self, unread: ScrubbedSegment(())  # type: ignore[method-assign]


@mutant
def restore_without_the_checksums_of_objects() -> None:
    download._check_crc = lambda *args: None
