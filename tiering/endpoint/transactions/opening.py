"""A transaction coordinator on the log directories that this process owns."""

from collections.abc import Callable, Iterator
from typing import Final

from local_log.errors import LogError
from remote.clock import Time
from tiering.endpoint.coordinator.compacted_topic import ChecksRoom, always
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.markers import Markers
from tiering.endpoint.transactions.producer_id_manager import ProducerIdManager
from tiering.endpoint.transactions.transaction_coordinator import TransactionCoordinator
from tiering.endpoint.transactions.transactions_topic import TransactionsTopic
from tiering.local_tier.local_tier import LocalTier

OF_BROKERS: Final = (1 << 40) - 1
"""Ids up to this one are left to brokers. The controller of one that gets the directory does not know which were given here, and
would give them again: its log would take a new producer's first records as repeated ones, and acknowledge them unwritten."""


def open_transactions(
    tier: LocalTier,
    config: TransactionConfig,
    groups: GroupCoordinator,
    clock: Time,
    report: Callable[[str], object],
    check_room: ChecksRoom = always,
) -> TransactionCoordinator:
    """With what the topic has; transactions whose outcome is decided end now. `groups` have been loaded. Raises LogError."""
    tier.verify_transactions()
    topic = TransactionsTopic.of(tier, config, check_room)
    markers = Markers(tier, groups, clock, report, config.syncs)
    ids = ProducerIdManager.of(tier, (OF_BROKERS, *_in_transactions(topic), *_in_logs(tier)))
    coordinator = TransactionCoordinator(config, topic, markers, ids, clock, report)
    coordinator.load()
    return coordinator


def _in_transactions(topic: TransactionsTopic) -> Iterator[int]:
    for _, metadata in topic.load():
        if metadata is not None:
            yield max(metadata.producer_id, metadata.next_producer_id)


def _in_logs(tier: LocalTier) -> Iterator[int]:
    for partition in tier.partitions():
        try:
            yield from tier.log(partition).producers.producers
        except LogError:
            continue  # of a directory that is offline since
