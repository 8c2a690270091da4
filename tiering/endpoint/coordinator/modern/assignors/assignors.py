"""The assignors by name."""

from collections.abc import Mapping
from typing import Final

from tiering.endpoint.coordinator.modern.assignors import range_assignor, uniform_heterogeneous, uniform_homogeneous
from tiering.endpoint.coordinator.modern.assignors.group_spec import Assignor, GroupSpec, Partitions

UNIFORM: Final = "uniform"


def assign_uniformly(group: GroupSpec) -> dict[str, Partitions]:
    """The partitions of each member, by Kafka's UniformAssignor."""
    if not group.members:
        return {}
    return uniform_homogeneous.assign(group) if group.is_homogeneous else uniform_heterogeneous.assign(group)


ASSIGNORS: Final[Mapping[str, Assignor]] = {UNIFORM: assign_uniformly, range_assignor.NAME: range_assignor.assign}
"""In the order of Kafka's default for `group.consumer.assignors`; the first one is used where no member names one."""
