"""Consumers of an endpoint: requests in, answers out, as its sockets would carry them. What they pass over, they were told to."""

from collections.abc import Mapping

from asked_endpoint import bytes_of
from own_endpoint import OwnEndpoint

from local_log.engine.memory_records import memory_batches
from remote.read.context import ReadContext
from simulated.archive_tasks import OWN_TOPIC, Act, Tasks
from simulated.own_host import OwnHost
from simulated.readers import decoded
from simulated.schedule import Actor, Schedule
from tiering.endpoint.protocol.api_keys import APIS
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

FETCHES_MAX = 8
FETCH_BYTES = (1, 200, 600, 1 << 16)
VERSIONS = (4, 11, 12, 16)
OFFSET_OUT_OF_RANGE = 1


class EndpointReaders:
    """Consumers of the process that owns its log directory."""

    def __init__(self, tasks: Tasks, host: OwnHost) -> None:
        self.tasks, self.host = tasks, host

    @property
    def schedule(self) -> Schedule:
        return self.tasks.schedule

    def reads(self, *, committed: bool) -> Act:
        """A consumer that fetches on from an offset; an answer may be lost, and it asks again."""

        def act(actor: Actor) -> None:
            self.host.actors.append(actor)
            store = self.tasks.store(actor)
            endpoint = OwnEndpoint(self.host.tier, store, clock=actor, reading=ReadContext(decoded))
            now = self.host.log.offsets
            offset: int = actor.random.randrange(now.log_start, now.end.offset + 1)
            version = actor.random.choice(VERSIONS)
            for _ in range(FETCHES_MAX):
                limit = min(self.host.end, self.host.log.offsets.last_stable) if committed else self.host.end
                found = self._asked(endpoint, version, offset, actor.random.choice(FETCH_BYTES), committed)
                next_offset = self._checked(found, offset, limit, committed, actor.name)
                if next_offset is None:
                    return
                offset = next_offset if actor.chance(0.9) else offset
                actor.pause()

        return act

    def _asked(self, endpoint: OwnEndpoint, version: int, offset: int, size: int, committed: bool) -> PartitionData:
        partition = FetchPartition(0, fetch_offset=offset, partition_max_bytes=size)
        topic = endpoint.topic(OWN_TOPIC, version, partition)
        answer = endpoint.ask(APIS[1], version, FetchRequest(topics=(topic,), isolation_level=int(committed)))
        found: PartitionData = answer.responses[0].partitions[0]
        return found

    def _checked(self, found: PartitionData, offset: int, limit: int, committed: bool, who: str) -> int | None:
        """Where to go on; None where there is nothing more, or an error that a consumer is told."""
        violated, start = self.schedule.violated, self._start()
        if found.error_code:
            self.schedule.errors[f"code {found.error_code}"] += 1
            if found.error_code == OFFSET_OUT_OF_RANGE and start <= offset <= limit:
                raise violated(f"{who} is told that {offset} is out of range, and the log has [{start}, {limit})")
            return None
        data = b"".join(map(bytes_of, found.records or ()))
        batches = {b.base_offset: data[b.position : b.position + b.size] for b in memory_batches(data)}
        self.tasks.judge.read(self.host.path, batches, who)
        ends = [b.last_offset + 1 for b in memory_batches(data)]
        if not ends:
            if start <= offset < limit:
                raise violated(f"{who} is given nothing at {offset}, and the log goes on to {limit}")
            return None
        if min(batches) > offset or ends[0] <= offset or ends[:-1] != [*batches][1:]:
            raise violated(f"{who} at {offset} is given the batches {sorted(batches)}")
        if committed:
            self._check_passed_over(found, batches, who)
        return ends[-1]

    def _check_passed_over(self, found: PartitionData, batches: Mapping[int, bytes], who: str) -> None:
        """A consumer passes over the records of transactions that were aborted, and over no others."""
        told = sorted((txn.first_offset, txn.producer_id) for txn in found.aborted_transactions or ())
        log, aborting = self.host, set[int]()
        for base, body in batches.items():
            batch = memory_batches(body)[0]
            while told and told[0][0] <= batch.last_offset:
                aborting.add(told.pop(0)[1])
            if batch.is_control:
                aborting -= {batch.producer_id} if base in log.aborted else set()
            elif batch.is_transactional:
                end = min((o for o, producer in log.ended.items() if producer == batch.producer_id and o > base), default=None)
                if (batch.producer_id in aborting) != (end in log.aborted):
                    was = "passes over" if batch.producer_id in aborting else "is given"
                    raise self.schedule.violated(f"{who} {was} the batch at {base}, whose transaction ended at {end}")

    def _start(self) -> int:
        """The first offset that may be read: by the log, or by the archive, whose retention goes first."""
        newest = self.tasks.judge.newest(self.host.path)
        archived = newest.manifest.log_start_offset if newest is not None else 0
        return max(archived, self.host.log.log_start_offset)
