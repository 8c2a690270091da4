"""Kafka's rules, case by case; tests/kafka asks its own authorizer about random ones."""

import pytest

from tiering.endpoint.authorization.acls import Acl, Operation, PatternType, Permission, ResourceType
from tiering.endpoint.authorization.authorizer import DECIDED_MAX, AclIndex, Authorizer
from tiering.endpoint.request_context import KafkaPrincipal

TOPIC, READ, WRITE, DESCRIBE = ResourceType.TOPIC, Operation.READ, Operation.WRITE, Operation.DESCRIBE
ALICE, BOB = KafkaPrincipal("alice"), KafkaPrincipal("bob")
HOST = "192.0.2.1"


def allow(name: str, operation: Operation = READ, principal: str = "User:alice", **more: object) -> Acl:
    return Acl(TOPIC, name, principal, operation, **more)  # type: ignore[arg-type]


def deny(name: str, operation: Operation = READ, principal: str = "User:alice", **more: object) -> Acl:
    return allow(name, operation, principal, permission=Permission.DENY, **more)


def may(acls: list[Acl], name: str, operation: Operation = READ, who: KafkaPrincipal = ALICE, host: str = HOST) -> bool:
    return Authorizer(AclIndex(acls)).authorize(who, host, operation, TOPIC, name)


def test_what_is_allowed_is_allowed_to_those_alone_and_for_that_alone() -> None:
    acls = [allow("orders")]
    assert may(acls, "orders")
    assert not may(acls, "orders", who=BOB)
    assert not may(acls, "orders", WRITE)
    assert not may(acls, "orders-2")
    assert not may([], "orders")


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER, Operation.ALL])
def test_who_may_read_or_change_may_describe(operation: Operation) -> None:
    assert may([allow("orders", operation)], "orders", DESCRIBE)
    assert may([deny("orders", operation), allow("orders", DESCRIBE)], "orders", DESCRIBE) is (operation is not Operation.ALL)


def test_who_may_alter_configs_may_describe_them() -> None:
    assert may([allow("orders", Operation.ALTER_CONFIGS)], "orders", Operation.DESCRIBE_CONFIGS)
    assert not may([allow("orders", Operation.ALTER_CONFIGS)], "orders", DESCRIBE)


def test_prefixes_and_the_wildcard_match_names() -> None:
    prefixed = allow("ord", pattern_type=PatternType.PREFIXED)
    assert may([prefixed], "orders")
    assert may([prefixed], "ord")
    assert not may([prefixed], "or")
    assert may([allow("*")], "orders")
    assert not may([allow("*", pattern_type=PatternType.PREFIXED)], "orders")


@pytest.mark.parametrize(
    "denied", [deny("orders"), deny("*"), deny("o", pattern_type=PatternType.PREFIXED), deny("orders", principal="User:*")]
)
def test_one_that_denies_prevails_over_all_that_allow(denied: Acl) -> None:
    acls = [allow("orders"), allow("*"), allow("ord", pattern_type=PatternType.PREFIXED)]
    assert may(acls, "orders")
    assert not may([*acls, denied], "orders")
    assert not may([denied, *acls], "orders")


def test_everybody_and_hosts() -> None:
    assert may([allow("orders", principal="User:*")], "orders", who=BOB)
    here = allow("orders", host=HOST)
    assert may([here], "orders")
    assert not may([here], "orders", host="192.0.2.2")
    assert may([here], "orders", host=f"::ffff:{HOST}")
    assert may([allow("orders", host="2001:db8:0:0:0:0:0:1")], "orders", host="2001:db8::1")


def test_super_users_may_do_everything_and_a_resource_without_acls_is_as_is_set() -> None:
    authorizer = Authorizer(AclIndex([deny("orders")]), frozenset({"User:alice"}), allows_unbound=True)
    assert authorizer.authorize(ALICE, HOST, READ, TOPIC, "orders")
    assert not authorizer.authorize(BOB, HOST, READ, TOPIC, "orders")
    assert authorizer.authorize(BOB, HOST, READ, TOPIC, "payments")
    assert authorizer.authorize(BOB, HOST, READ, ResourceType.GROUP, "orders")


def test_what_is_remembered_is_bounded_in_number_and_size_and_threads_do_not_disturb_each_other() -> None:
    authorizer = Authorizer(AclIndex([allow("t", pattern_type=PatternType.PREFIXED)]))

    def ask(name: str) -> bool:
        return authorizer.authorize(ALICE, HOST, READ, TOPIC, name)

    class Forgetful(dict[object, object]):
        """As if another thread forgot everything all the time."""

        def __setitem__(self, key: object, value: object) -> None:
            pass

    assert all(ask(f"t{number}{'x' * 300}") for number in range(10))
    assert not authorizer.index._decided
    assert all(ask(f"t{number}") for number in range(DECIDED_MAX + 1))
    assert len(authorizer.index._decided) == 1
    authorizer.index._decided = Forgetful()  # type: ignore[assignment]
    assert ask("topic")
