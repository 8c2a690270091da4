"""UpdateFeatures (57): finalized features of the cluster get other levels."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, boolean, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class FeatureUpdateKey:
    """A feature and its new level; the type is 1 for an upgrade, 2 and 3 for safe and unsafe downgrades."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


@dataclass(frozen=True, slots=True)
class UpdateFeaturesRequest:
    """Asks for other levels, or only whether there could be."""

    timeout_ms: int = int32(default=60_000)
    feature_updates: tuple[FeatureUpdateKey, ...] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")


@dataclass(frozen=True, slots=True)
class UpdatableFeatureResult:
    """Whether a feature has its new level."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class UpdateFeaturesResponse:
    """The outcome: all of them, or none."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    results: tuple[UpdatableFeatureResult, ...] = array(UpdatableFeatureResult, "0-1")
