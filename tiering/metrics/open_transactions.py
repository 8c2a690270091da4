"""The transactions of an endpoint's own logs that are open, and those among them that hang: nobody is going to end them.

A consumer that reads only what is committed waits at the first offset of an open transaction. Producers end theirs, or the
coordinator aborts them after their timeout; with `kafka-transactions abort` an operator ends one that hangs.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from local_log.engine.unified_log import UnifiedLog
from local_log.formats.filenames import TopicPartition
from tiering.endpoint.apis.context import Context
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.transaction_metadata import NO_TIME_MS, TransactionMetadata
from tiering.endpoint.transactions.transaction_states import ONGOING, PREPARED

LATE_MS_MAX: Final = 30_000
"""So long after its timeout an open transaction should have been aborted, and after its outcome it should have its markers."""


class OpenTransaction(NamedTuple):
    """An open transaction. `transactional_id` is None for one that only a partition knows of.

    `since_ms` is when it began or its outcome was decided, of one without transactional id when it last wrote. `hangs` says why
    nobody ends it, "" if somebody will.
    """

    transactional_id: str | None
    producer_id: int
    state: str
    since_ms: int
    timeout_ms: int | None
    partitions: tuple[TopicPartition, ...]
    hangs: str = ""


def open_transactions(context: Context, now_ms: int) -> list[OpenTransaction]:
    """Those that hang first, then the oldest. Empty where nothing is written."""
    if context.local_tier is None or context.transactions is None:
        return []
    # In this order: what begins meanwhile is known to the coordinator before it is in a log.
    in_logs = dict(_in_logs(context.local_tier.logs()))
    known: tuple[TransactionMetadata, ...] = ()
    with suppress(TransactionError):  # it is stopping
        known = context.transactions.all()
    found = [*_of_ids(known, now_ms), *_of_nobody(in_logs, known, now_ms)]
    return sorted(found, key=lambda one: (not one.hangs, one.since_ms))


_InLogs = Mapping[tuple[int, TopicPartition], int]
"""When the producers of open transactions last wrote, by their ids and partitions."""


def _in_logs(logs: Mapping[TopicPartition, UnifiedLog]) -> Iterator[tuple[tuple[int, TopicPartition], int]]:
    for partition, log in logs.items():
        if log.offsets.first_unstable is None:
            continue
        with log.lock:
            entries = [producer.entry() for producer in log.producers.producers.values()]
        for entry in entries:
            if entry.current_txn_first_offset is not None:
                yield (entry.producer_id, partition), entry.last_timestamp


def _of_ids(known: Iterable[TransactionMetadata], now_ms: int) -> Iterator[OpenTransaction]:
    for one in known:
        is_open = one.state is ONGOING
        if not is_open and one.state not in PREPARED:
            continue
        since_ms = one.start_ms if is_open and one.start_ms != NO_TIME_MS else one.last_update_ms
        late_ms = now_ms - since_ms - (one.timeout_ms if is_open else 0)
        why = "it is open for longer than its timeout" if is_open else "its markers are not written"
        partitions = tuple(sorted(one.partitions))
        yield OpenTransaction(
            one.transactional_id, one.producer_id, one.state.title, since_ms, one.timeout_ms, partitions,
            why if late_ms > LATE_MS_MAX else "",
        )  # fmt: skip


def _of_nobody(in_logs: _InLogs, known: Iterable[TransactionMetadata], now_ms: int) -> Iterator[OpenTransaction]:
    """Those that no transactional id has: the coordinator will not abort them."""
    has = {(one.producer_id, partition) for one in known for partition in one.partitions}
    for (producer_id, partition), written_ms in sorted(in_logs.items(), key=lambda item: item[1]):
        if (producer_id, partition) not in has and now_ms - written_ms > LATE_MS_MAX:
            why = "no transactional id has it; kafka-transactions abort ends it"
            yield OpenTransaction(None, producer_id, ONGOING.title, written_ms, None, (partition,), why)
