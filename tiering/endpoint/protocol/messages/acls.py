"""DescribeAcls (29), CreateAcls (30) and DeleteAcls (31): access control lists."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, int8, int16, int32, string

_LITERAL = 3


@dataclass(frozen=True, slots=True)
class DescribeAclsRequest:
    """Asks for the ACLs that a filter finds."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=_LITERAL)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@dataclass(frozen=True, slots=True)
class AclDescription:
    """Who may or may not do what to the resource."""

    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@dataclass(frozen=True, slots=True)
class DescribeAclsResource:
    """A resource or a pattern of such, and its ACLs."""

    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=_LITERAL)
    acls: tuple[AclDescription, ...] = array(AclDescription)


@dataclass(frozen=True, slots=True)
class DescribeAclsResponse:
    """The ACLs, by resource."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    resources: tuple[DescribeAclsResource, ...] = array(DescribeAclsResource)


@dataclass(frozen=True, slots=True)
class AclCreation:
    """An ACL to add."""

    resource_type: int = int8()
    resource_name: str = string()
    resource_pattern_type: int = int8("1+", default=_LITERAL)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@dataclass(frozen=True, slots=True)
class CreateAclsRequest:
    """Asks to add ACLs."""

    creations: tuple[AclCreation, ...] = array(AclCreation)


@dataclass(frozen=True, slots=True)
class AclCreationResult:
    """Whether one was added."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class CreateAclsResponse:
    """The outcomes, in the order of the request."""

    throttle_time_ms: int = int32()
    results: tuple[AclCreationResult, ...] = array(AclCreationResult)


@dataclass(frozen=True, slots=True)
class DeleteAclsFilter:
    """Finds ACLs to delete."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8("1+", default=_LITERAL)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@dataclass(frozen=True, slots=True)
class DeleteAclsRequest:
    """Asks to delete the ACLs that filters find."""

    filters: tuple[DeleteAclsFilter, ...] = array(DeleteAclsFilter)


@dataclass(frozen=True, slots=True)
class DeleteAclsMatchingAcl:
    """One that was found and deleted."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8("1+", default=_LITERAL)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@dataclass(frozen=True, slots=True)
class DeleteAclsFilterResult:
    """What one filter found."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = array(DeleteAclsMatchingAcl)


@dataclass(frozen=True, slots=True)
class DeleteAclsResponse:
    """The outcomes, in the order of the filters."""

    throttle_time_ms: int = int32()
    filter_results: tuple[DeleteAclsFilterResult, ...] = array(DeleteAclsFilterResult)
