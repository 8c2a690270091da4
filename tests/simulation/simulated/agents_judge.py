"""What agents tell in the end, when nothing fails any more: all that is lost, nothing else, and no error that is over."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from local_log.engine.memory_records import batch_at
from local_log.ranges import clipped, without
from remote.keys import PartitionPath
from remote.manifest.losses import lost_offsets
from simulated.agents import AgentHost
from simulated.broker_agents import BrokerAgent
from simulated.judge import Judge
from tiering.agent.view import AgentView, PartitionView
from tiering.losses.seen_logs import SeenLog


def check_agents(judge: Judge, hosts: Sequence[BrokerAgent], path: PartitionPath) -> None:
    """`path` is that of the topic as it is now; there may have been others of its name."""
    for host in hosts if not judge.watched[path].may_be_deleted else ():
        check_agent(judge, host)
    for one, watched in judge.watched.items():
        if one.topic == path.topic and not watched.may_be_deleted:
            _check_losses(judge, hosts, one, is_current=one == path)
            for host in hosts:
                if (seen := host.known.get(one.topic_id)) is not None:
                    _check_known(judge, hosts, one, seen)


def check_agent(judge: Judge, host: AgentHost) -> None:
    """The last agent of a log directory has nothing left to do, and nothing to complain about but bit rot."""
    if host.view is not None and (wrong := _is_wrong(host.view)) and not _is_damaged(host.view):
        raise judge.violated(f"{host.name} at the end, when nothing goes wrong: {wrong}")


def _is_wrong(view: AgentView) -> str:
    """What its users would ask about."""
    if view.error is not None or view.store is not None:
        return repr(view.error or view.store)
    for one in view.partitions:
        if one.is_failing or one.lag.segments:
            return f"{one.partition}: {one.error or one.refused or one.lag}"
    return "" if view.partitions else "it sees no partition"


def _is_damaged(view: AgentView) -> bool:
    return any(one.refused is not None and one.refused.kind == "Corrupt" for one in view.partitions)


def _told(view: AgentView) -> dict[str, int]:
    """How many offsets are lost of the topics of one name, by their ids."""
    return {one.topic_id or "": one.lost_offsets for view in (*view.partitions, *view.gone) for one in _with_formers(view)}


def _with_formers(view: PartitionView) -> Iterator[PartitionView]:
    yield replace(view, formers=())
    yield from view.formers


def _check_losses(judge: Judge, hosts: Sequence[BrokerAgent], path: PartitionPath, *, is_current: bool) -> None:
    """Each agent tells what is lost of the topic; of a former one, one of them at least. None tells more."""
    newest = judge.newest(path)
    lost = lost_offsets(newest.manifest) if newest is not None and not newest.manifest.is_deleted else 0
    told = {host.name: _told(host.view).get(path.topic_id, 0) for host in hosts if host.view is not None}
    if newest is not None and (min if is_current else max)(told.values()) < lost:
        raise judge.violated(f"{lost} offsets of {path} are lost, and agents tell {told}")
    if newest is not None and max(told.values()) > lost:
        raise judge.violated(f"{lost} offsets of {path} are lost, and agents tell more: {told}")
    if lost and not any("are lost" in message for host in hosts for message in host.reported):
        raise judge.violated(f"{lost} offsets of {path} are lost, and no agent has reported it")


def _check_known(judge: Judge, hosts: Sequence[BrokerAgent], path: PartitionPath, seen: SeenLog) -> None:
    """Of what a folder had of a topic that was deleted each batch is archived, or lost for all to see."""
    newest, of = judge.newest(path), judge.watched[path]
    if newest is None:
        told = max(_told(host.view).get(path.topic_id, 0) for host in hosts if host.view is not None)
        if seen.end_offset > seen.start_offset and not told and _has(of.log.committed, seen.start_offset, seen.end_offset):
            raise judge.violated(f"{path} was never archived, and no agent tells of [{seen.start_offset}, {seen.end_offset})")
        return
    m = newest.manifest
    holes = [(gap.start, gap.end) for gap in m.gaps if not gap.is_of_compaction]
    start = max(seen.start_offset, of.first_start, m.log_start_offset)
    missing = clipped([*holes, (m.end_offset, seen.end_offset)], start, max(start, seen.end_offset))
    for hole in without(missing, [(loss.start, loss.end) for loss in m.losses]):
        if _has(of.log.committed, *hole):
            raise judge.violated(f"{path} was deleted with [{hole[0]}, {hole[1]}), which no loss tells")


def _has(committed: dict[int, bytes], start: int, end: int) -> bool:
    return any(clipped([(base, batch_at(body, 0).last_offset + 1)], start, end) for base, body in committed.items())
