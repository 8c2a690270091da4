"""What agents tell in the end, when nothing fails any more: all that is lost, nothing else, and no error that is over."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from local_log.engine.memory_records import batch_at
from local_log.ranges import Range, clipped, without
from remote.keys import PartitionPath
from remote.manifest.losses import lost_offsets
from simulated.agents import AgentHost
from simulated.broker_agents import BrokerAgent
from simulated.judge import Judge
from tiering.agent.view import AgentView, PartitionView
from tiering.offload.plan import NOT_COMMITTED

REPORTED = re.compile(r": (\d+) offsets are lost, ")


def check_agents(judge: Judge, hosts: Sequence[BrokerAgent], path: PartitionPath) -> None:
    """`path` is that of the topic as it is now; there may have been others of its name."""
    for host in hosts if not judge.watched[path].may_be_deleted else ():
        check_agent(judge, host)
    for one, watched in judge.watched.items():
        if one.topic == path.topic and not watched.may_be_deleted:
            _check_losses(judge, hosts, one, is_current=one == path)
            for host in hosts:
                for offsets in host.known.get(one.topic_id, ()) if one != path else ():
                    _check_known(judge, hosts, one, offsets)


def check_agent(judge: Judge, host: AgentHost) -> None:
    """The last agent of a log directory has nothing left to do, and nothing to complain about but bit rot."""
    hangs = isinstance(host, BrokerAgent) and bool(host.broker.log.producers.ongoing)
    if host.view is not None and (wrong := _is_wrong(host.view, hangs=hangs)) and not _is_damaged(host.view):
        raise judge.violated(f"{host.name} at the end, when nothing goes wrong: {wrong}")


def _is_wrong(view: AgentView, *, hangs: bool) -> str:
    """What its users would ask about.

    `hangs`: a transaction is open in this replica whose marker lies below the log start of its leader, which therefore never
    sends it. As with Kafka nothing behind it is stable on this broker, and other replicas archive it.
    """
    if view.error is not None or view.store is not None:
        return repr(view.error or view.store)
    for one in view.partitions:
        # What was not committed its log keeps until its next retention.
        below = one.lag.waiting if hangs or one.lag.reason == NOT_COMMITTED else 0
        if one.is_failing or one.lag.segments > below:
            return f"{one.partition}: {one.error or one.refused or one.lag}"
    return "" if view.partitions else "it sees no partition"


def _is_damaged(view: AgentView) -> bool:
    errors = (error for one in view.partitions for error in (one.refused, one.error))
    return any(error is not None and error.kind == "Corrupt" for error in errors)


def _told(view: AgentView) -> dict[str, int]:
    """How many offsets are lost of the topics of one name, by their ids."""
    return {one.topic_id or "": one.lost_offsets for view in (*view.partitions, *view.gone) for one in _with_formers(view)}


def _with_formers(view: PartitionView) -> Iterator[PartitionView]:
    yield replace(view, formers=())
    yield from view.formers


def _check_losses(judge: Judge, hosts: Sequence[BrokerAgent], path: PartitionPath, *, is_current: bool) -> None:
    """Each agent tells what is lost of the topic, one at least what is lost of a former one that brokers had. None tells more."""
    newest = judge.newest(path)
    if newest is None:
        return
    m = newest.manifest
    lost = 0 if m.is_deleted else lost_offsets(m)
    told = {host.name: _told(host.view).get(path.topic_id, 0) for host in hosts if host.view is not None}
    if max(told.values()) > lost:
        raise judge.violated(f"{lost} offsets of {path} are lost, and agents tell more: {told}")
    if not lost or (not is_current and m.local_log_start_offsets.keys() - {host.broker.source for host in hosts}):
        return  # who is the last to record that a log is gone tells what is lost
    if not is_current and any(path.topic_id in host.forgotten for host in hosts):
        return  # only the archive has it
    if (min if is_current else max)(told.values()) < lost:
        raise judge.violated(f"{lost} offsets of {path} are lost, and agents tell {told}")
    said = {host.name: _reported(host) for host in hosts if host.view is not None}
    if (min if is_current else max)(said.values()) < lost:
        raise judge.violated(f"{lost} offsets of {path} are lost, and agents have reported {said}")


def _reported(host: BrokerAgent) -> int:
    """The most offsets that its agents have reported as lost, whether another broker may have them or not."""
    return max((int(n) for message in host.reported for n in REPORTED.findall(message)), default=0)


def _check_known(judge: Judge, hosts: Sequence[BrokerAgent], path: PartitionPath, seen: Range) -> None:
    """Of what a folder had of a topic that was deleted each batch is archived, or lost for all to see."""
    newest, of = judge.newest(path), judge.watched[path]
    if newest is None:
        told = max(_told(host.view).get(path.topic_id, 0) for host in hosts if host.view is not None)
        if not told and _has(of.log.committed, *seen):
            raise judge.violated(f"{path} was never archived, and no agent tells of [{seen[0]}, {seen[1]})")
        return
    m = newest.manifest
    if m.local_log_start_offsets.keys() - m.gone.keys() - {host.broker.source for host in hosts if path.topic_id in host.known}:
        return  # a copy of a log directory, or a log whose agent ended before it was kept: nobody tells that it is gone
    holes = [(gap.start, gap.end) for gap in m.gaps if not gap.is_of_compaction]
    start = max(seen[0], of.first_start, m.log_start_offset)
    missing = clipped([*holes, (m.end_offset, seen[1])], start, max(start, seen[1]))
    for hole in without(missing, [(loss.start, loss.end) for loss in m.losses]):
        if _has(of.log.committed, *hole):
            raise judge.violated(f"{path} was deleted with [{hole[0]}, {hole[1]}), which no loss tells")


def _has(committed: dict[int, bytes], start: int, end: int) -> bool:
    return any(clipped([(base, batch_at(body, 0).last_offset + 1)], start, end) for base, body in committed.items())
