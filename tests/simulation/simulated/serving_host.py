"""A process that owns its log directory and serves it to clients: what they write and commit, over crashes and failing disks.

One partition of theirs is archived, as that of every `OwnHost`; two partitions of another topic are not.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from local_log.formats.filenames import TopicPartition
from remote.store.api import ObjectStore
from simulated.answers_judge import AnswersJudge
from simulated.clients_judge import ClientsJudge
from simulated.endpoint_process import REBALANCE_MS, SESSION_MS, EndpointProcess
from simulated.groups_judge import GroupsJudge
from simulated.ledgers import Ledger, batches_from
from simulated.network import Network
from simulated.own_host import PARTITION, OwnHost
from simulated.schedule import MINUTE_MS, Actor
from tiering.endpoint.coordinator.offsets_log import NAME as OFFSETS
from tiering.endpoint.protocol.api_keys import Api
from tiering.endpoint.transactions.transaction_log import Marker
from tiering.endpoint.transactions.transaction_states import IDLE

CALLS: Final = "calls"
OTHERS: Final = (TopicPartition(CALLS, 0), TopicPartition(CALLS, 1))
PLACES: Final = (PARTITION, *OTHERS)
"""The partitions that clients write to and read."""
TIMEOUT_MS: Final = (40_000, 5 * MINUTE_MS)
"""Of transactions."""


@dataclass(eq=False)
class ServingHost(OwnHost):
    """`store_of` opens the archive for a request. What happens to it but for its clients is as with every `OwnHost`."""

    happenings: ClassVar[Mapping[str, float]] = {
        "tick": 3.0, "flush": 0.3, "delete_records": 0.15, "kill": 0.35, "lose_power": 0.35, "fail": 0.3, "restart": 0.3,
        "produce_keyed": 1.0,
    }  # fmt: skip
    store_of: Callable[[Actor], ObjectStore] | None = None
    answered: str = ""
    """The kind of its latest answer."""
    _has_failed: bool = False
    _is_unsure: bool = False
    """Whether its power has failed where nothing is synced."""

    def __post_init__(self) -> None:
        self.process: EndpointProcess | None = None
        super().__post_init__()
        self.tier.create_topic(CALLS, len(OTHERS), {"remote.storage.enable": "false"})
        self.network, self.clients = Network(self.schedule), ClientsJudge(self.schedule)
        self.ledgers = {one: Ledger(str(one), self.schedule) for one in OTHERS}
        self.groups = GroupsJudge(self.schedule, self.syncs == "flush.messages", SESSION_MS, REBALANCE_MS)
        self.judge = AnswersJudge(self.clients, self.groups, lambda topic_id: self.tier.name_of(topic_id), self._synced)
        self.schedule.tell("own host", f"syncs: {self.syncs}")
        self.open()

    def open(self) -> None:
        """The endpoint, on a tier that has started."""
        self.process = EndpointProcess(self.schedule, self.tier, self.disk, self, syncs=self.syncs == "each append")
        self.observes()

    def now(self) -> EndpointProcess:
        """The process of the moment."""
        assert self.process is not None
        return self.process

    def before_step(self) -> None:
        """What threads of the process do meanwhile, and requests that have been on their way."""
        if not self.tier.offline:
            self.now().tick()
            self.network.land(self.now())

    def committed_in(self, partition: TopicPartition) -> dict[int, bytes]:
        """The batches of a partition."""
        return self.committed if partition == PARTITION else self.ledgers[partition].committed

    def end_of(self, partition: TopicPartition) -> int:
        """Where a partition ends."""
        return self.end if partition == PARTITION else self.ledgers[partition].end

    # What the process tells

    def observes(self) -> None:
        for partition in PLACES:
            if self.tier.offline:
                return  # what it has appended is found after the crash
            log, end = self.tier.log(partition), self.end_of(partition)
            for base, body in batches_from(log, end).items() if log.log_end_offset > end else ():
                if partition == PARTITION:
                    self._acknowledged(base, body)
                else:
                    self.ledgers[partition].add(base, body, is_durable=self.syncs == "flush.messages")
                self.clients.appended(partition, base, body)

    def _acknowledged(self, base: int, body: bytes) -> None:
        """Where each append is synced, a batch is not durable before it is acknowledged."""
        durable = self.durable
        super()._acknowledged(base, body)
        if self.syncs == "each append":
            self.durable = durable

    def answers(self, api: Api, asked: Any, found: Any) -> None:
        self.answered = api.name
        self.judge.answers(api, asked, found)

    def takes_up(self, api: Api, asked: Any) -> None:
        self.judge.takes_up(api, asked)

    def is_synced(self, api: Api, asked: Any, found: Any) -> None:
        self.answered = api.name
        self.judge.is_synced(api, asked, found)

    def marked(self, partition: TopicPartition, marker: Marker) -> None:
        if partition.topic == OFFSETS:
            self.groups.ends(marker.producer_id, committed=marker.is_committed, is_sure=self.syncs != "never")
        else:
            self._synced(partition, self.end_of(partition))

    def store(self, actor: Actor) -> ObjectStore:
        assert self.store_of is not None
        return self.store_of(actor)

    def _synced(self, partition: TopicPartition, end: int) -> None:
        if self.syncs != "each append":
            return
        if partition == PARTITION:
            self.durable = max(self.durable, end)
        else:
            self.ledgers[partition].durable = max(self.ledgers[partition].durable, end)

    # What happens

    def tick(self) -> None:
        self.now().syncing.run()
        super().tick()

    def restart(self) -> None:
        self.now().stop()
        super().restart()

    def _ends(self, why: str) -> None:
        self._has_failed = bool(self.tier.offline)
        if self.process is not None:
            self.observes()
            self.process.is_dead = True
        super()._ends(why)

    def _is_unanswered(self, base: int, body: bytes) -> bool:
        return self._has_failed

    def _recovered(self, *, is_killed: bool) -> None:
        super()._recovered(is_killed=is_killed)
        for partition, ledger in self.ledgers.items():
            ledger.recovered(self.tier.log(partition), is_killed=is_killed, may_have_more=self._has_failed)
        if not is_killed and self.syncs == "never":
            self.clients.power_lost()
            self._is_unsure = True
        self.clients.deleted_below[PARTITION] = self.start_max
        for partition in PLACES:
            self.clients.recovered(partition, self.committed_in(partition))
        self.groups.crashed(is_killed=is_killed, keeps_ended=self.syncs != "never")
        self.open()
        self.groups.goes_on({partition: self.tier.log(partition).log_end_offset for partition in PLACES})

    def settle(self) -> None:
        """Nothing fails any more: every transaction ends, by its producer or since its time is up."""
        self.disk.fault = None
        if self.tier.offline:
            self._crashes(0.0, "its disk was mended")
        self.network.land(self.now(), all_of_them=True)
        for _ in self._minutes(max(TIMEOUT_MS) // MINUTE_MS + 2):
            self.now().syncing.run()
            self.now().tick()
        self.observes()
        found = [one for one in self.now().transactions.all() if one.state not in IDLE]
        if found:
            raise self.schedule.violated(f"{found[0].transactional_id} is {found[0].state.title} at the end")
        self.clients.check_ended()
        for partition in PLACES if self._is_unsure else ():
            self._end_what_hangs(partition)
        for partition in PLACES:
            now = self.tier.log(partition).offsets
            if now.last_stable != now.end.offset:
                raise self.schedule.violated(f"{partition} is stable up to {now.last_stable} at the end, not {now.end.offset}")
        super().settle()
        self.observes()

    def _end_what_hangs(self, partition: TopicPartition) -> None:
        """A loss of power has taken a marker, and not what says that it was written: `kafka-transactions abort` ends these."""
        producers = self.tier.log(partition).producers
        for producer in sorted(producers.ongoing.values()):
            marker = Marker(producer, producers.producers[producer].epoch, 0, is_committed=False, transaction_version=0)
            self.now().transactions.markers.write(partition, marker)

    def _minutes(self, count: int) -> Iterator[None]:
        for _ in range(count):
            self.schedule.now += MINUTE_MS
            yield
