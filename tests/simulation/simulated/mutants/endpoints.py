"""Faults in what an endpoint answers."""

from typing import Any

from simulated.mutants.registry import mutant
from tiering.endpoint.apis import fetch
from tiering.endpoint.reads import Reads
from tiering.read.own_log import OwnLog
from tiering.read.tiered_log import Isolation, TieredLog


@mutant
def tell_no_consumer_of_aborted_transactions() -> None:
    of_log = fetch._of_log
    fetch._of_log = lambda wanted, log, isolation, batches, diverging: of_log(
        wanted, log, isolation, batches._replace(aborted=None), diverging
    )


@mutant
def ask_the_log_of_before_for_aborted_transactions() -> None:
    OwnLog.aborted = TieredLog.aborted  # type: ignore[method-assign]


@mutant
def give_committed_consumers_what_is_not_stable() -> None:
    read = Reads.read

    def to_the_high_watermark(self: Reads, log: Any, offset: int, max_bytes: int, isolation: Any, **options: Any) -> Any:
        return read(self, log, offset, max_bytes, Isolation.read_uncommitted, **options)

    Reads.read = to_the_high_watermark  # type: ignore[method-assign]
