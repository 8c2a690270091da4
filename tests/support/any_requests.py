"""Requests that Hypothesis makes of the fields of their classes; most values mean something to the logs that are asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hypothesis import strategies as st

from local_log.formats.batches import scan
from local_log.formats.filenames import CLUSTER_METADATA_TOPIC, PARTITION_METADATA, offset_of_file, parse_partition_dir
from local_log.formats.partition_metadata import read_topic_id
from local_log.formats.primitives import INT32_MAX, INT64_MAX
from tiering.endpoint.protocol.fields import BINARY, RECORDS, STRING, UUID, ArrayOf, FieldSpec, WireType, specs_of

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_ODD_NAMES = ("nowhere", "", "a b", "..", "x" * 250, "größe")
_ODD_IDS = ("B" * 21 + "A", "A" * 22)
_ODD_PARTITIONS = (1, 2, 3, 4, 5, -1, INT32_MAX)
_SPECIAL_TIMES = (-1, -2, -3, -4, -5, -6, -7, 0, INT64_MAX, -INT64_MAX - 1)
_ODD_OFFSETS = (0, 0, 1, -1, -2, INT64_MAX, -INT64_MAX - 1)
_EPOCHS = (0, 1, 2, 3, 5, 6, 7, -2, INT32_MAX)
_SIZES = (0, 1, 100, 5_000, 100_000, 1 << 20, INT32_MAX, INT32_MAX)


GROUPS = ("readers", "writers", "nobody", "")
_NO_SESSION = 2_000_000_000
LAST = 2_000_000_001
"""Stands for the fetch session that was given last."""


@dataclass(frozen=True)
class Facts:
    """What the logs have: topics and their ids, offsets where something begins or ends, timestamps of records."""

    topics: Mapping[str, str]
    offsets: Sequence[int]
    timestamps: Sequence[int]
    bases: frozenset[int]
    """Where segments begin."""

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The facts of a log directory whose topics have ids."""
        topics, offsets, timestamps, bases = dict[str, str](), set[int](), set[int](), set[int]()
        for file in sorted(folder.glob("*/*.log")):
            partition = parse_partition_dir(file.parent.name)
            assert partition is not None
            if partition.topic == CLUSTER_METADATA_TOPIC:
                continue
            topics[partition.topic] = read_topic_id((file.parent / PARTITION_METADATA).read_bytes())
            bases.add(offset_of_file(file.name))
            batches, _ = scan(file.read_bytes())
            if len(batches):
                offsets |= {int(batches.base_offset[0]), int(batches.last_offset[-1]), batches.next_offset}
                timestamps |= {time + more for time in batches.max_timestamp[:1].tolist() for more in (0, 1)}
        return cls(topics, sorted(offsets), sorted(timestamps), frozenset(bases))

    def values(self) -> dict[str, st.SearchStrategy[Any]]:
        """The values of fields by their names; other fields take any value of their type."""
        names, ids = _mostly(tuple(self.topics), _ODD_NAMES), _mostly(tuple(self.topics.values()), _ODD_IDS)
        numbers, epochs = _mostly((0,), _ODD_PARTITIONS), _mostly((-1,), _EPOCHS)
        offsets, sizes = _mostly(self.offsets, _ODD_OFFSETS), _mostly(_SIZES, (-1,))
        replicas = _mostly((-1,), (-2, 1, 7, -3))
        return {
            "topic": names,
            "name": names,
            "topic_name": names,
            "resource_name": _mostly((*self.topics, "1", ""), _ODD_NAMES),
            "topic_id": ids,
            "partition": numbers,
            "partitions": numbers,
            "partition_index": numbers,
            "fetch_offset": offsets,
            "log_start_offset": _mostly((-1,), self.offsets),
            "timestamp": st.sampled_from([*_SPECIAL_TIMES, *_SPECIAL_TIMES, *self.timestamps]),
            "leader_epoch": st.sampled_from((-1, *_EPOCHS)),
            "current_leader_epoch": epochs,
            "last_fetched_epoch": epochs,
            "partition_max_bytes": sizes,
            "max_bytes": sizes,
            "min_bytes": st.sampled_from((0, 1, 1, 100_000, -1, INT32_MAX)),
            "max_wait_ms": st.sampled_from((0, 0, 0, 3)),
            "isolation_level": _mostly((0, 1), (2, -1)),
            "session_id": _mostly((0, 0, 0, LAST), (_NO_SESSION, -1)),
            "session_epoch": _mostly((-1, -1, 0, 1, 1), (5, -2)),
            "replica_id": replicas,
            "max_num_offsets": st.sampled_from((1, 2, 100, 0, -1, INT32_MAX)),
            "response_partition_limit": st.sampled_from((2000, 2001, 1, 3, 0, -1, INT32_MAX)),
            "resource_type": st.sampled_from((2, 2, 2, 4, 4, 8, 16, 32, 0, 3, 127)),
            "endpoint_type": st.sampled_from((1, 1, 1, 2, 0, 3)),
            "resource_types": st.sampled_from((2, 2, 4, 8, 16, 32, 0, 99)),
            "timeout_ms": st.sampled_from((10_000, 60_000)),  # with none a controller gives up before it begins
            "election_type": _mostly((0, 1), (2, -1)),
            "feature": _mostly(("group.version",), ("group", "")),
            "max_version_level": _mostly((1,), (2, -1)),  # 0 would change the broker
            "upgrade_type": _mostly((1, 2, 3), (0, 9)),
        }


def of_groups() -> dict[str, st.SearchStrategy[Any]]:
    """The values of fields about groups without members."""
    groups, epochs = st.sampled_from(GROUPS), _mostly((-1,), (0, 1))
    return {
        **dict.fromkeys(("group_id", "groups", "groups_names", "key", "coordinator_keys"), groups),
        "key_type": _mostly((0,), (1, 2, 3, -1)),
        "member_id": _mostly(("",), ("m",)),
        "group_instance_id": _mostly((None,), ("i",)),
        **dict.fromkeys(("generation_id", "generation_id_or_member_epoch", "member_epoch"), epochs),
        "committed_offset": _mostly((0, 5, 700, 3000), (-1, -2, INT64_MAX)),
        "committed_leader_epoch": _mostly((-1,), (0, 3)),
        "committed_metadata": st.sampled_from((None, "", "of mine", "x" * 5000)),
        "retention_time_ms": st.just(-1),
        "partition_indexes": _mostly((0,), _ODD_PARTITIONS),
        "states_filter": st.sampled_from(("Empty", "Stable", "Dead", "x")),
        "types_filter": st.sampled_from(("classic", "consumer", "x")),
    }


def of_producers() -> dict[str, st.SearchStrategy[Any]]:
    """The values of fields of Produce. A broker appends none of the records, and says so."""
    nothing = st.binary(max_size=50).map(lambda data: (data,))
    return {
        "acks": _mostly((-1, 1), (2, -2)),
        "transactional_id": _mostly((None,), ("", "t")),
        "timeout_ms": st.sampled_from((0, 1000)),
        "index": _mostly((0,), _ODD_PARTITIONS),
        "records": nothing,
    }


def of_acls(topics: Sequence[str]) -> dict[str, st.SearchStrategy[Any]]:
    """The values of fields of DescribeAcls, CreateAcls and DeleteAcls."""
    names = _mostly((*topics, *GROUPS, "*", "g-", "kafka-cluster", "kafka-cluster"), _ODD_NAMES)
    principals = _mostly(
        ("User:alice", "User:alice", "User:*", "User:bob"), ("", "alice", "User:", "Group:alice", ":", "User:a:b")
    )
    types, operations = _mostly((2, 2, 3, 4), (0, 1, 5, 6, 7, 8, 127)), _mostly(range(2, 13), (0, 1, 13, 14, 15, 16, 127, -1))
    return {
        **dict.fromkeys(("resource_name", "resource_name_filter"), names),
        **dict.fromkeys(("resource_type", "resource_type_filter"), types),
        "resource_pattern_type": _mostly((3, 4), (0, 1, 2, 5, -1)),
        "pattern_type_filter": _mostly((1, 2, 3, 4), (0, 5, -1)),
        **dict.fromkeys(("principal", "principal_filter"), principals),
        **dict.fromkeys(("host", "host_filter"), _mostly(("*", "*", "127.0.0.1"), ("", "10.0.0.1", "localhost"))),
        "operation": operations,
        "permission_type": _mostly((2, 3, 3), (0, 1, 4)),
    }


def of_rights(topics: Sequence[str]) -> dict[str, st.SearchStrategy[Any]]:
    """The values of fields of ACLs that there may be."""
    return of_acls(topics) | {
        "resource_name": st.sampled_from((*topics, *topics, *GROUPS[:3], "*", "*", "g-", "kafka-cluster")),
        "resource_type": st.sampled_from((2, 2, 2, 3, 3)),
        "resource_pattern_type": st.sampled_from((3, 4)),
        "principal": st.sampled_from(("User:alice", "User:*")),
        "operation": st.sampled_from((2, 3, 3, 4, 6, 8, 10)),
        "permission_type": st.sampled_from((3, 3, 3, 2)),
    }


def any_message(of: type, version: int, values: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Messages of a class with the fields that a version has, tagged ones now and then; the others have their defaults."""
    fields = {s.name: _field(s, version, values) for s in specs_of(of) if version in s.versions}
    return st.builds(of, **fields)


def _field(spec: FieldSpec, version: int, values: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    if isinstance(spec.type, ArrayOf):
        found: st.SearchStrategy[Any] = st.lists(_one(spec.name, spec.type.element, version, values), max_size=3).map(tuple)
    else:
        found = _one(spec.name, spec.type, version, values)
    if spec.nullable is not None and version in spec.nullable:
        found = st.one_of(found, found, found, st.none())
    return found if spec.tag is None else st.one_of(st.just(spec.default), found)


def _one(name: str, of: WireType | type, version: int, values: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    if not isinstance(of, WireType):
        return any_message(of, version, values)
    if name in values:
        return values[name]
    if of is STRING:
        return st.text(max_size=5)
    if of is RECORDS:
        return st.binary(max_size=50).map(lambda data: (data,))
    if of is BINARY:
        return st.binary(max_size=50)
    if of is UUID:
        return values["topic_id"]
    if of.name in _BITS:
        most = (1 << (_BITS[of.name] - 1)) - 1
        return st.integers(-most - 1, most)
    return st.booleans()


def _mostly(values: Sequence[Any], odd: Sequence[Any]) -> st.SearchStrategy[Any]:
    usual = st.sampled_from(list(values))
    return st.one_of(usual, usual, usual, usual, st.sampled_from(list(odd)))
