"""Faults in what is told of records that were deleted before they were archived."""

from simulated.mutants.registry import mutant
from tiering.losses import report
from tiering.offload.due import OffloadPlan


@mutant
def tell_nobody_what_was_deleted_before_it_was_archived() -> None:
    report.local_deletions_recorded = lambda manifest, seen, now_ms: manifest


@mutant
def forget_what_waits_below_the_log_start() -> None:
    OffloadPlan.start = property(lambda self: self.log.log_start_offset)  # type: ignore[assignment,method-assign]
