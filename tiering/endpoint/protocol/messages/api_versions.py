"""ApiVersions (18): what a client asks first."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, boolean, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest:
    """Asks which APIs there are, and says who asks."""

    client_software_name: str = string("3+")
    client_software_version: str = string("3+")


@dataclass(frozen=True, slots=True)
class ApiVersion:
    """An API and the versions of it that are answered."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@dataclass(frozen=True, slots=True)
class SupportedFeatureKey:
    """A feature and the levels of it that the broker can have."""

    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


@dataclass(frozen=True, slots=True)
class FinalizedFeatureKey:
    """A feature and the levels of it that the cluster has."""

    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse:
    """The APIs and versions that are answered."""

    error_code: int = int16()
    api_keys: tuple[ApiVersion, ...] = array(ApiVersion)
    throttle_time_ms: int = int32("1+")
    supported_features: tuple[SupportedFeatureKey, ...] = array(SupportedFeatureKey, "3+", tag=0)
    finalized_features_epoch: int = int64("3+", default=-1, tag=1)
    finalized_features: tuple[FinalizedFeatureKey, ...] = array(FinalizedFeatureKey, "3+", tag=2)
    zk_migration_ready: bool = boolean("3+", tag=3)
