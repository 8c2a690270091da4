"""Kafka's command line tools at Kafka 4.3 and at an endpoint of its own log directory: they write the same.

Both have the same topics, groups with and without members, and transactions; each tool is asked the same of one after the other.
"""

import json
from collections.abc import Iterator

import pytest
import real_kafka
from compared_tools import Both
from java_tools import tools
from kafka_judge import oracle
from own_broker import OwnBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

SETTINGS = {"num.partitions": "2", "group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}

TOPICS = """
TopicCommand --create --topic new --partitions 3 --config segment.ms=60000 --config cleanup.policy=compact
TopicCommand --create --topic new ; 1
TopicCommand --create --topic new --if-not-exists
TopicCommand --create --topic assigned --replica-assignment 1,1
TopicCommand --create --topic not --replication-factor 2 ; 1
TopicCommand --create --topic not --replica-assignment 7 ; 1
TopicCommand --create --topic "not a topic" ; 1
TopicCommand --create --topic not --config nonsense=1 ; 1
TopicCommand --create --topic not --partitions 0 ; 1
TopicCommand --list
TopicCommand --list --exclude-internal --topic "n.*"
TopicCommand --describe --topic new
TopicCommand --describe --topic not ; 1
TopicCommand --describe --topic not --if-exists
TopicCommand --describe --under-replicated-partitions
TopicCommand --describe --at-min-isr-partitions --topic "new|assigned"
TopicCommand --alter --topic new --partitions 2 ; 1
TopicCommand --alter --topic new --partitions 5
TopicCommand --alter --topic assigned --partitions 3 --replica-assignment 1,1,1
TopicCommand --alter --topic not --partitions 3 ; 1
TopicCommand --describe --topic new --partition-size-limit-per-response 2
TopicCommand --delete --topic not ; 1
TopicCommand --delete --topic not --if-exists
TopicCommand --delete --topic assigned
TopicCommand --list
"""

CONFIGS = """
kafka.admin.ConfigCommand --alter --entity-type topics --entity-name orders --add-config cleanup.policy=[compact,delete]
kafka.admin.ConfigCommand --describe --entity-type topics --entity-name orders
kafka.admin.ConfigCommand --describe --entity-type topics --entity-name orders --all
kafka.admin.ConfigCommand --describe --topic orders
kafka.admin.ConfigCommand --alter --entity-type topics --entity-name orders --delete-config cleanup.policy
kafka.admin.ConfigCommand --alter --entity-type topics --entity-name orders --delete-config segment.ms
kafka.admin.ConfigCommand --alter --entity-type topics --entity-name orders --add-config nonsense=1 ; 1
kafka.admin.ConfigCommand --alter --entity-type topics --entity-name orders --add-config retention.ms=x ; 1
kafka.admin.ConfigCommand --alter --entity-type topics --entity-name not --add-config retention.ms=1 ; 1
kafka.admin.ConfigCommand --describe --entity-type topics --entity-name orders
kafka.admin.ConfigCommand --describe --entity-type topics --entity-name not
kafka.admin.ConfigCommand --describe --entity-type brokers --entity-name 1
kafka.admin.ConfigCommand --describe --entity-type brokers --entity-name 7
kafka.admin.ConfigCommand --describe --entity-type users
kafka.admin.ConfigCommand --describe --entity-type users --entity-name alice
kafka.admin.ConfigCommand --describe --entity-type clients
kafka.admin.ConfigCommand --describe --entity-type ips
"""

GROUPS = """
consumer.group.ConsumerGroupCommand --list
consumer.group.ConsumerGroupCommand --list --state
consumer.group.ConsumerGroupCommand --list --state Stable,Empty --type classic
consumer.group.ConsumerGroupCommand --list --state nonsense ; 1
GroupsCommand --list
GroupsCommand --list --group-type consumer
consumer.group.ConsumerGroupCommand --describe --all-groups
consumer.group.ConsumerGroupCommand --describe --all-groups --state --verbose
consumer.group.ConsumerGroupCommand --describe --all-groups --members --verbose
consumer.group.ConsumerGroupCommand --describe --all-groups --offsets --verbose
consumer.group.ConsumerGroupCommand --describe --group nobody
consumer.group.ConsumerGroupCommand --describe --group nobody --members
consumer.group.ConsumerGroupCommand --reset-offsets --group live-classic --topic orders --to-earliest --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group live-consumer --topic orders --to-earliest --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --to-earliest --dry-run
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --to-latest --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders:0,1 --to-offset 4 --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --to-offset 400 --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --shift-by -2 --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --to-datetime 2020-09-13T12:26:45.000 --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --to-datetime 2033-09-13T12:26:45.000 --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --by-duration P1D --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic orders --to-current --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --from-file {folder}/reset.csv --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --all-topics --to-earliest --execute --export
consumer.group.ConsumerGroupCommand --reset-offsets --group fresh --topic other --to-earliest --execute
consumer.group.ConsumerGroupCommand --reset-offsets --group gone --topic not --to-earliest --execute
consumer.group.ConsumerGroupCommand --delete-offsets --group gone --topic orders:0
consumer.group.ConsumerGroupCommand --delete-offsets --group gone --topic other
consumer.group.ConsumerGroupCommand --delete-offsets --group live-classic --topic orders
consumer.group.ConsumerGroupCommand --delete-offsets --group live-consumer --topic orders
consumer.group.ConsumerGroupCommand --delete-offsets --group nobody --topic orders
consumer.group.ConsumerGroupCommand --describe --group gone
StreamsResetter --application-id live-classic --input-topics orders --dry-run ; 1
StreamsResetter --application-id gone --input-topics orders --to-offset 3
consumer.group.ConsumerGroupCommand --describe --group gone
consumer.group.ConsumerGroupCommand --delete --group live-classic
consumer.group.ConsumerGroupCommand --delete --group nobody
consumer.group.ConsumerGroupCommand --delete --group gone --group fresh
consumer.group.ConsumerGroupCommand --list
"""

TRANSACTIONS = """
TransactionsCommand list
TransactionsCommand list --transactional-id-pattern "o.*"
TransactionsCommand describe --transactional-id open
TransactionsCommand describe --transactional-id done
TransactionsCommand describe --transactional-id nobody ; 1
TransactionsCommand describe-producers --topic other --partition 0
TransactionsCommand find-hanging --broker-id 1
TransactionsCommand find-hanging --topic other --max-transaction-timeout 0
TransactionsCommand abort --topic other --partition 0 --start-offset 3 ; 1
TransactionsCommand abort --topic other --partition 0 --start-offset 7
TransactionsCommand describe-producers --topic other --partition 0
TransactionsCommand describe --transactional-id open
TransactionsCommand forceTerminateTransaction --transactional-id nobody ; 1
"""

RECORDS = """
DeleteRecordsCommand --offset-json-file {folder}/records.json
GetOffsetShell --topic orders --time -2
GetOffsetShell --topic orders --time earliest-local
GetOffsetShell --topic orders --time latest-tiered
GetOffsetShell --topic orders --time 1600000010000
GetOffsetShell --topic orders --time max-timestamp
GetOffsetShell --topic-partitions orders:1-,other
GetOffsetShell --topic not ; 1
LogDirsCommand --describe --topic-list other,orders
LogDirsCommand --describe --topic-list not
ClusterTool list-endpoints
"""

STEPS = {"topics": TOPICS, "configs": CONFIGS, "groups": GROUPS, "transactions": TRANSACTIONS, "records": RECORDS}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    offsets = [{"topic": "orders", "partition": number, "offset": offset} for number, offset in ((0, 4), (1, -1), (2, 99))]
    (folder / "records.json").write_text(json.dumps({"partitions": offsets, "version": 1}))
    (folder / "reset.csv").write_text("orders,0,2\norders,1,3\n")
    of_kafka = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    keeps_all = {"log_retention_ms": "-1"}  # as a log directory of our own without more words
    of_us = {**SETTINGS, "message.timestamp.after.max.ms": str((1 << 63) - 1)}  # as brokers of tests
    ours = OwnBroker(folder, *(f"{name}={value}" for name, value in of_us.items()))
    try:
        with real_kafka.broker(folder / "kafka", **of_kafka, **keeps_all) as kafka, tools(kafka) as tool:
            found = Both(folder, kafka, ours.address, tool)
            yield found
            found.close()
    finally:
        ours.close()


@oracle
@pytest.mark.parametrize("steps", STEPS)
def test_tools_write_the_same_of_kafka_and_of_us(both: Both, steps: str) -> None:
    for command in STEPS[steps].strip().splitlines():
        kafka, ours = both.written(command)
        assert ours == kafka, command
