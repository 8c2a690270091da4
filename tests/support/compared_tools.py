"""Kafka and an endpoint of its own log directory with the same topics, groups and transactions: what tools write of each."""

import re
import shlex
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from java_tools import Tools

SINCE_MS, STEP_MS = 1_600_000_000_000, 1_000
_PATIENCE_S = 60
_MAY_DIFFER = (
    (r"\b1[789]\d{11}\b", "TIME"),
    (r"(TIME) \d+", r"\1 AGE"),
    (r"TopicId: \S+", "TopicId"),
    (r"Configs: \S*", "Configs"),
    (r"synonyms=\{[^}]*\}", ""),
    (r" remote.log.delete.on.disable=.*\n", ""),
    (r'"logDir":"[^"]*"', "LOG DIR"),
    (r"(live-\w+-\d)-[0-9a-f-]{32,36}", r"\1-ID"),
    (r"(?<= )[\w/+-]{22}(?= )", "ID"),
    (r"\b10995116280{0,2}(\d+)\b", r"\1"),
)
"""Times, ids and paths; of settings, who set them: those of our defaults have the names of a topic's. An archive is
not deleted by switching its topic off. Producers have ids above 2^40 here, 1099511628000 and up."""


class Both:
    """Kafka and ours, with clients that go on."""

    def __init__(self, folder: Path, kafka: str, ours: str, tool: Tools) -> None:
        self._folder, self._addresses, self._tool = folder, (kafka, ours), tool
        self._producers = [_transactions(address) for address in self._addresses if _records(address)]
        self._members = [member for address in self._addresses for member in _members(address)]
        self._ended = threading.Event()
        self._polling = threading.Thread(target=self._poll)
        self._polling.start()

    def _poll(self) -> None:
        """A member that does not is no member for long."""
        while not self._ended.wait(0.2):
            for one in self._members:
                one.poll(0)

    def close(self) -> None:
        """Ends the clients."""
        self._ended.set()
        self._polling.join()
        for one in self._members:
            one.close()

    def written(self, command: str) -> list[list[str]]:
        """What a tool writes of each, without what may differ; `command` is its line, and what it has to end with if it fails."""
        line, _, code = command.format(folder=self._folder).partition(" ; ")
        name, *arguments = shlex.split(line)
        ends = int(code or 0)
        return [_told(self._tool(name, *arguments, code=ends, address=one), one, ends) for one in self._addresses]


def _told(text: str, address: str, code: int) -> list[str]:
    """The lines in order; of a failure only the error, as the reasons have words of their own."""
    if code:
        return sorted(set(re.findall(r"\w+(?:Exception|Error)\b", text)))
    host, port = address.split(":")
    text = re.sub(r"[ \t]+", " ", text).replace(address, "ADDRESS").replace(f"{host} {port}", "ADDRESS")
    for pattern, shown in _MAY_DIFFER:
        text = re.sub(pattern, shown, text)
    return sorted(text.splitlines())


def _records(address: str) -> bool:
    """Ten in each partition of a topic, five in another."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for made in admin.create_topics([NewTopic("orders", 3), NewTopic("other", 1)]).values():
        made.result(_PATIENCE_S)
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for number in range(35):
        topic, partition = ("orders", number % 3) if number < 30 else ("other", 0)
        producer.produce(topic, str(number), partition=partition, timestamp=SINCE_MS + number * STEP_MS)
    return not producer.flush(_PATIENCE_S)


def _transactions(address: str) -> list[Producer]:
    """One that has committed, and one that goes on."""
    found = []
    for name in ("done", "open"):
        config = {"bootstrap.servers": address, "transactional.id": name, "transaction.timeout.ms": 600_000, "log_level": 0}
        found.append(Producer(config))
        found[-1].init_transactions(_PATIENCE_S)
        found[-1].begin_transaction()
        found[-1].produce("other", name, partition=0, timestamp=SINCE_MS)
        assert found[-1].flush(_PATIENCE_S) == 0
        if name == "done":
            found[-1].commit_transaction(_PATIENCE_S)
    return found


def _members(address: str) -> list[Consumer]:
    """Of a group of each protocol, that go on; a third group has offsets alone."""
    members, groups = [], (("classic", 0), ("classic", 1), ("consumer", 0))
    for protocol, number in groups:
        of_group = {"group.id": f"live-{protocol}", "group.protocol": protocol, "client.id": f"live-{protocol}-{number}"}
        static = {"group.instance.id": of_group["client.id"]} if number == 0 else {}
        config = {"bootstrap.servers": address, "enable.auto.commit": False, "log_level": 0}
        members.append(Consumer({**config, **of_group, **static}))
        members[-1].subscribe(["orders"])
    until = time.monotonic() + _PATIENCE_S
    while [len(one.assignment()) for one in members] != [2, 1, 3]:
        assert time.monotonic() < until
        for one in members:
            one.poll(0.02)
    gone = Consumer({"bootstrap.servers": address, "group.id": "gone", "enable.auto.commit": False, "log_level": 0})
    offsets = [TopicPartition("orders", 0, 3), TopicPartition("orders", 1, 5), TopicPartition("other", 0, 2)]
    for one, positions in ((gone, offsets), (members[0], offsets[:1]), (members[2], offsets[1:2])):
        one.commit(offsets=positions, asynchronous=False)
    gone.close()
    return members
