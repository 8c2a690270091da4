"""ACLs that are created, found and deleted over the protocol."""

from dataclasses import replace
from pathlib import Path

import pytest
from asked_by_alice import ALICE, as_admin, endpoint_of_alice
from asked_endpoint import Endpoint
from tiered_worlds import World

from tiering.endpoint.authorization.acl_file import read_acls
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Acl, Operation, Permission, ResourceType
from tiering.endpoint.protocol.api_keys import (
    CREATE_ACLS,
    DELETE_ACLS,
    DESCRIBE_ACLS,
)
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)


@pytest.fixture
def endpoint(world: World, tmp_path: Path) -> Endpoint:
    return endpoint_of_alice(world, tmp_path)


EVERYTHING = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_created_found_and_deleted_over_the_protocol(endpoint: Endpoint, version: int) -> None:
    as_admin(endpoint)
    new = AclCreation(2, "orders", 4, "User:bob", "*", Operation.READ, Permission.ALLOW)
    wrong = replace(new, principal="bob")
    made = endpoint.ask(CREATE_ACLS, version, CreateAclsRequest((new, wrong, new)))
    assert [one.error_code for one in made.results] == [0, ErrorCode.INVALID_REQUEST, 0]
    found = endpoint.ask(DESCRIBE_ACLS, version, replace(EVERYTHING, principal_filter="User:bob")).resources
    assert [(one.resource_name, one.pattern_type, len(one.acls)) for one in found] == [("orders", 4, 1)]
    assert len(endpoint.ask(DESCRIBE_ACLS, version, EVERYTHING).resources) == 3
    matching = replace(EVERYTHING, resource_type_filter=2, resource_name_filter="orders-2", pattern_type_filter=2)
    assert [one.resource_name for one in endpoint.ask(DESCRIBE_ACLS, version, matching).resources] == ["orders"]
    of = DeleteAclsFilter(2, "orders", 4, None, None, 1, 1)
    deleted = endpoint.ask(DELETE_ACLS, version, DeleteAclsRequest((of, replace(of, operation=99)))).filter_results
    assert [one.error_code for one in deleted] == [0, ErrorCode.INVALID_REQUEST]
    assert [one.principal for one in deleted[0].matching_acls] == ["User:bob"]
    assert endpoint.context.acls is not None
    assert len(read_acls(Path(endpoint.context.acls.path).read_bytes())) == 2


def test_who_has_changed_which_acls_is_told(endpoint: Endpoint) -> None:
    as_admin(endpoint)
    new = AclCreation(2, "orders", 4, "User:bob", "*", Operation.READ, Permission.ALLOW)
    endpoint.ask(CREATE_ACLS, 3, CreateAclsRequest((new, replace(new, principal="bob"))))
    endpoint.ask(DELETE_ACLS, 3, DeleteAclsRequest((DeleteAclsFilter(2, "orders", 4, None, None, 1, 1),)))
    endpoint.ask(DELETE_ACLS, 3, DeleteAclsRequest((DeleteAclsFilter(2, "orders", 4, None, None, 1, 1),)))
    who, acl = (
        "Principal = User:admin from host = 192.0.2.1 by",
        "ACL ALLOW READ on TOPIC:PREFIXED:orders to User:bob from host *",
    )
    assert endpoint.said == [f"{who} CreateAcls: added the {acl}", f"{who} DeleteAcls: deleted the {acl}"]


def test_acls_of_unknown_and_any_types_are_refused_as_by_a_broker(endpoint: Endpoint) -> None:
    as_admin(endpoint)
    new = AclCreation(2, "orders", 3, "User:bob", "*", Operation.READ, Permission.ALLOW)
    for api, request in (
        (DESCRIBE_ACLS, replace(EVERYTHING, operation=0)),
        (CREATE_ACLS, CreateAclsRequest((new, replace(new, permission_type=0)))),
        (DELETE_ACLS, DeleteAclsRequest((DeleteAclsFilter(0, None, 1, None, None, 1, 1),))),
    ):
        with pytest.raises(InvalidRequest, match="UNKNOWN"):
            endpoint.ask(api, 3, request)
    assert endpoint.ask(DESCRIBE_ACLS, 3, replace(EVERYTHING, resource_type_filter=99)).resources == ()
    for any_type in ({"resource_type": 1}, {"resource_pattern_type": 2}, {"operation": 1}, {"permission_type": 1}):
        made = endpoint.ask(CREATE_ACLS, 3, CreateAclsRequest((new, replace(new, **any_type))))
        assert [one.error_code for one in made.results] == [ErrorCode.INVALID_REQUEST] * 2
    assert endpoint.ask(DESCRIBE_ACLS, 3, replace(EVERYTHING, principal_filter="User:bob")).resources == ()


def test_acls_are_for_those_who_may_describe_and_alter_the_cluster(endpoint: Endpoint) -> None:
    cluster = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    new = AclCreation(2, "orders", 3, ALICE, "*", Operation.READ, Permission.ALLOW)
    of = DeleteAclsFilter(2, "orders", 3, None, None, 1, 1)

    def asked() -> list[int]:
        return [
            endpoint.ask(DESCRIBE_ACLS, 3, EVERYTHING).error_code,
            endpoint.ask(CREATE_ACLS, 3, CreateAclsRequest((new,))).results[0].error_code,
            endpoint.ask(DELETE_ACLS, 3, DeleteAclsRequest((of,))).filter_results[0].error_code,
        ]

    assert asked() == [cluster] * 3
    endpoint.context.acls.change(  # type: ignore[union-attr]
        lambda acls: [*acls, Acl(ResourceType.CLUSTER, CLUSTER_NAME, ALICE, Operation.DESCRIBE)]
    )
    assert asked() == [0, cluster, cluster]
    endpoint.context = replace(endpoint.context, acls=None)
    assert asked() == [ErrorCode.SECURITY_DISABLED] * 3


def test_a_file_that_cannot_be_written_is_told_and_nothing_has_changed(endpoint: Endpoint) -> None:
    assert endpoint.context.acls is not None
    Path(endpoint.context.acls.path).write_text("damaged")
    new = AclCreation(2, "orders", 3, ALICE, "*", Operation.READ, Permission.ALLOW)
    made = as_admin(endpoint).ask(CREATE_ACLS, 3, CreateAclsRequest((new,))).results[0]
    assert made.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "the file of ACLs is not changed" in endpoint.said[-1]
    assert len(endpoint.context.acls.authorizer.index.acls) == 2
