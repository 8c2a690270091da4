"""Retention of a direct write that is committed, and that no manifest has taken in."""

from archive_fakes import CountingIds, FixedClock
from written_rows import NOW_MS, committed_only

from remote import archive
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import read_given
from tiering.retention.run import Retention

DAY_MS = 86_400_000


def test_a_write_that_is_committed_expires_before_a_manifest_has_taken_it_in() -> None:
    store, later = committed_only(), FixedClock(NOW_MS + 400 * DAY_MS)
    store.clock = later
    given = read_given((f"retention.ms={DAY_MS}",))
    ((_, done),) = Retention(store, later, CountingIds("r"), given, is_archive_alone=True).done(("rows",))
    assert isinstance(done, RetentionPlan)
    (manifest,) = archive.newest_manifests(store, "rows")
    assert (manifest.entries, manifest.log_start_offset, manifest.end_offset) == ((), 20, 20)
    assert len(manifest.deleting) == 1
