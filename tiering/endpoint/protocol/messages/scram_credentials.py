"""DescribeUserScramCredentials (50) and AlterUserScramCredentials (51): what is kept of users' passwords."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tiering.endpoint.protocol.fields import array, int8, int16, int32, secret, string

MECHANISMS: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16384
"""Kafka's. Clients refuse fewer."""


@dataclass(frozen=True, slots=True)
class UserName:
    """A user."""

    name: str = string()


@dataclass(frozen=True, slots=True)
class DescribeUserScramCredentialsRequest:
    """Asks for users; for all if there are none, or if they are null."""

    users: tuple[UserName, ...] | None = array(UserName, nullable="0+")


@dataclass(frozen=True, slots=True)
class CredentialInfo:
    """The key of one of MECHANISMS, and how often the password was hashed."""

    mechanism: int = int8()
    iterations: int = int32()


@dataclass(frozen=True, slots=True)
class DescribeUserScramCredentialsResult:
    """A user's credentials, but for what is secret."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    credential_infos: tuple[CredentialInfo, ...] = array(CredentialInfo)


@dataclass(frozen=True, slots=True)
class DescribeUserScramCredentialsResponse:
    """The users."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    results: tuple[DescribeUserScramCredentialsResult, ...] = array(DescribeUserScramCredentialsResult)


@dataclass(frozen=True, slots=True)
class ScramCredentialDeletion:
    """A credential to remove."""

    name: str = string()
    mechanism: int = int8()


@dataclass(frozen=True, slots=True)
class ScramCredentialUpsertion:
    """A credential to keep: the client has salted the password and hashed it, `iterations` times."""

    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = secret()
    salted_password: bytes = secret()


@dataclass(frozen=True, slots=True)
class AlterUserScramCredentialsRequest:
    """What to change, once a user."""

    deletions: tuple[ScramCredentialDeletion, ...] = array(ScramCredentialDeletion)
    upsertions: tuple[ScramCredentialUpsertion, ...] = array(ScramCredentialUpsertion)


@dataclass(frozen=True, slots=True)
class AlterUserScramCredentialsResult:
    """What became of a user."""

    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class AlterUserScramCredentialsResponse:
    """By user."""

    throttle_time_ms: int = int32()
    results: tuple[AlterUserScramCredentialsResult, ...] = array(AlterUserScramCredentialsResult)
