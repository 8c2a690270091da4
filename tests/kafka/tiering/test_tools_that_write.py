"""Kafka's command line tools at work with an endpoint of its own log directory, which is killed between them."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import real_kafka
from confluent_kafka import Producer
from java_tools import Tools, tools
from kafka_judge import oracle
from own_broker import OwnBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

GROUPS = "consumer.group.ConsumerGroupCommand"
ORDERS = ("--topic", "orders")
COUNT = 60


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    few = ("offsets.topic.num.partitions=2", "transaction.state.log.num.partitions=1")
    own = OwnBroker(tmp_path_factory.mktemp("own"), "group.initial.rebalance.delay.ms=0", *few)
    yield own
    own.close()


@pytest.fixture(scope="module")
def tool(broker: OwnBroker) -> Iterator[Tools]:
    """With a topic of two partitions and records, which were written before the endpoint was killed."""
    with tools(broker.address) as found:
        found("TopicCommand", "--create", *ORDERS, "--partitions", 2, "--config", "segment.ms=60000")
        keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
        found("ConsoleProducer", *ORDERS, *keyed, stdin="".join(f"{number}:{number}\n" for number in range(COUNT)))
        broker.end(signal.SIGKILL)
        broker.start()
        yield found


@oracle
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafka_consumer_groups_tells_resets_and_deletes_a_group(tool: Tools, protocol: str) -> None:
    read = ("--group", protocol, "--from-beginning", "--max-messages", COUNT, "--timeout-ms", 30_000)
    written = tool("consumer.ConsoleConsumer", *ORDERS, *read, "--command-property", f"group.protocol={protocol}")
    assert sorted(int(line) for line in written.splitlines() if line.isdigit()) == list(range(COUNT))
    assert protocol in tool(GROUPS, "--list")
    rows = [line.split() for line in tool(GROUPS, "--describe", "--group", protocol).splitlines() if "orders" in line]
    assert (sum(int(row[3]) for row in rows), {row[5] for row in rows}) == (COUNT, {"0"})
    reset = ("--reset-offsets", "--group", protocol, *ORDERS, "--to-earliest", "--execute")
    assert "orders" in tool(GROUPS, *reset)
    rows = [line.split() for line in tool(GROUPS, "--describe", "--group", protocol).splitlines() if "orders" in line]
    assert ({row[3] for row in rows}, sum(int(row[5]) for row in rows)) == ({"0"}, COUNT)
    tool(GROUPS, "--delete", "--group", protocol)
    assert protocol not in tool(GROUPS, "--list")


@oracle
def test_kafka_transactions_finds_and_aborts_what_no_coordinator_knows(broker: OwnBroker, tool: Tools) -> None:
    """A transaction hangs when the states of all are lost: nobody ends it, and who reads what is committed waits at it."""
    left = Producer({"bootstrap.servers": broker.address, "transactional.id": "left", "log_level": 0})
    left.init_transactions(30)
    left.begin_transaction()
    left.produce("orders", "left", partition=0)
    assert left.flush(30) == 0
    broker.end(signal.SIGKILL)
    for states in broker.logs.glob("__transaction_state-*/*.log"):
        os.truncate(states, 0)
    broker.start()
    [_, hangs] = tool("TransactionsCommand", "find-hanging", "--broker-id", 1, "--max-transaction-timeout", 0).splitlines()
    topic, partition, *_, start, _, _ = hangs.split()
    tool("TransactionsCommand", "abort", "--topic", topic, "--partition", partition, "--start-offset", start)
    assert "orders" not in tool("TransactionsCommand", "find-hanging", "--broker-id", 1, "--max-transaction-timeout", 0)


@oracle
def test_kafka_leader_election_finds_that_none_is_needed(tool: Tools) -> None:
    preferred = ("--election-type", "preferred")
    assert "Valid replica already elected" in tool("LeaderElectionCommand", *preferred, *ORDERS, "--partition", 0)
    assert "rror" not in tool("LeaderElectionCommand", *preferred, "--all-topic-partitions")


@oracle
def test_kafka_reassign_partitions_leaves_them_and_says_why_they_cannot_be_elsewhere(tool: Tools, tmp_path: Path) -> None:
    wanted = tmp_path / "partitions.json"
    given = ("--reassignment-json-file", wanted)

    def place(*brokers: int) -> None:
        of = {"topic": "orders", "partition": 0, "replicas": brokers}
        wanted.write_text(json.dumps({"version": 1, "partitions": [of]}))

    place(1)
    assert "Successfully started" in tool("reassign.ReassignPartitionsCommand", "--execute", *given)
    assert "orders-0 is completed" in tool("reassign.ReassignPartitionsCommand", "--verify", *given)
    assert "No partition reassignments found" in tool("reassign.ReassignPartitionsCommand", "--list")
    place(2)
    assert "Unknown broker id 2" in tool("reassign.ReassignPartitionsCommand", "--execute", *given, code=1)


@oracle
def test_kafka_features_and_metadata_quorum_tell_what_there_is(tool: Tools) -> None:
    assert "transaction.version" in tool("FeatureCommand", "describe")
    assert "cannot be changed" in tool("FeatureCommand", "downgrade", "--feature", "group.version=0", code=1)
    assert "UnsupportedVersionException" in tool("MetadataQuorumCommand", "describe", "--status", code=1)
    assert "SecurityDisabledException" in tool("AclCommand", "--list", code=1)


@oracle
def test_kafka_verifiable_producer_and_consumer_count_the_same(broker: OwnBroker, tool: Tools) -> None:
    """Each in a Java of its own: they end it."""
    of = ("--bootstrap-server", broker.address, "--topic", "verified", "--max-messages", "50")
    tool("TopicCommand", "--create", "--topic", "verified")
    sent = [json.loads(line) for line in real_kafka.tool("VerifiableProducer", *of).splitlines()]
    assert [one["offset"] for one in sent if one["name"] == "producer_send_success"] == list(range(50))
    group = ("--group-id", "verifying", "--reset-policy", "earliest", "--verbose")
    read = [json.loads(line) for line in real_kafka.tool("VerifiableConsumer", *of, *group).splitlines()]
    assert [one["offset"] for one in read if one["name"] == "record_data"] == list(range(50))
    assert all(one["success"] for one in read if one["name"] == "offsets_committed")
    assert (
        "50"
        in next(line for line in tool(GROUPS, "--describe", "--group", "verifying").splitlines() if "verified" in line).split()
    )
