"""DescribeClientQuotas (48) and AlterClientQuotas (49): how much clients may do."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, boolean, float64, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class ComponentData:
    """What an entity must have: 0 this name, 1 the default, 2 any name."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class DescribeClientQuotasRequest:
    """Asks for the entities that have all components, and, if it is strict, no others."""

    components: tuple[ComponentData, ...] = array(ComponentData)
    strict: bool = boolean()


@dataclass(frozen=True, slots=True)
class EntityData:
    """A part of an entity; without a name it stands for all that have no quota of their own."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class ValueData:
    """A quota."""

    key: str = string()
    value: float = float64()


@dataclass(frozen=True, slots=True)
class DescribedEntry:
    """An entity and its quotas."""

    entity: tuple[EntityData, ...] = array(EntityData)
    values: tuple[ValueData, ...] = array(ValueData)


@dataclass(frozen=True, slots=True)
class DescribeClientQuotasResponse:
    """The entities."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    entries: tuple[DescribedEntry, ...] | None = array(DescribedEntry, nullable="0+")


@dataclass(frozen=True, slots=True)
class OpData:
    """A quota to set or to remove."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@dataclass(frozen=True, slots=True)
class AlteredEntry:
    """An entity, and what to change of its quotas."""

    entity: tuple[EntityData, ...] = array(EntityData)
    ops: tuple[OpData, ...] = array(OpData)


@dataclass(frozen=True, slots=True)
class AlterClientQuotasRequest:
    """What to change, or only to check."""

    entries: tuple[AlteredEntry, ...] = array(AlteredEntry)
    validate_only: bool = boolean()


@dataclass(frozen=True, slots=True)
class AlterClientQuotasResult:
    """What became of an entity."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    entity: tuple[EntityData, ...] = array(EntityData)


@dataclass(frozen=True, slots=True)
class AlterClientQuotasResponse:
    """By entity."""

    throttle_time_ms: int = int32()
    entries: tuple[AlterClientQuotasResult, ...] = array(AlterClientQuotasResult)
