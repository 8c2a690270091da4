"""Quotas that are told and changed over the protocol."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from asked_endpoint import Endpoint

from local_log.errors import Unreadable
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.authorization.acl_file import AclFile, write_acls
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.protocol.api_keys import ALTER_CLIENT_QUOTAS, DESCRIBE_CLIENT_QUOTAS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlteredEntry,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)
from tiering.endpoint.quotas.client_quotas import ClientQuotas
from tiering.endpoint.quotas.quota_file import QuotaFile
from tiering.endpoint.request_context import KafkaPrincipal

RATE = "consumer_byte_rate"
EXACT, OF_DEFAULT, ANY = 0, 1, 2
RATES = {("alice", None): 5, ("*", None): 7, (None, "spark"): 9, ("alice", "spark"): 11, ("*", "*"): 13}


class World:
    """An endpoint with quotas and ACLs, which is asked by an administrator."""

    def __init__(self, folder: Path) -> None:
        self.endpoint, disk = Endpoint(folder, None), OsWritableDisk()
        rows = ({"user": user, "client-id": client, RATE: rate} for (user, client), rate in RATES.items())
        self.path = folder / "quotas.json"
        self.path.write_text(json.dumps({"format": 1, "quotas": [{k: v for k, v in row.items() if v} for row in rows]}))
        self.quotas = ClientQuotas()
        self.file = QuotaFile(OsDisk(), disk, str(self.path), self.endpoint.clock, self.quotas, self.endpoint.said.append)
        self.file.load()
        (folder / "acls.json").write_bytes(write_acls([]))
        authorizer = Authorizer(super_users=frozenset({"User:admin"}))
        acls = AclFile(OsDisk(), disk, str(folder / "acls.json"), self.endpoint.clock, authorizer, print)
        acls.load()
        self.endpoint.context = replace(self.endpoint.context, acls=acls, quotas=self.quotas, quota_file=self.file)
        self.be("admin")

    def be(self, name: str) -> None:
        self.endpoint.connection = replace(self.endpoint.connection, principal=KafkaPrincipal(name))

    def described(self, *components: ComponentData, strict: bool = False, version: int = 1) -> dict[object, float] | int:
        found = self.endpoint.ask(DESCRIBE_CLIENT_QUOTAS, version, DescribeClientQuotasRequest(components, strict))
        if found.error_code:
            assert found.entries is None
            assert found.error_message
            return int(found.error_code)
        return {tuple((e.entity_type, e.entity_name) for e in one.entity): one.values[0].value for one in found.entries}

    def alter(self, *entries: AlteredEntry, validate_only: bool = False) -> list[int]:
        found = self.endpoint.ask(ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest(entries, validate_only)).entries
        assert [one.entity for one in found] == [one.entity for one in entries]
        assert all(bool(one.error_code) == bool(one.error_message) for one in found)
        return [one.error_code for one in found]


def entry(entity: dict[str, str | None], value: float | None = 10.0, key: str = RATE) -> AlteredEntry:
    op = OpData(key, remove=True) if value is None else OpData(key, value)
    return AlteredEntry(tuple(EntityData(kind, name) for kind, name in entity.items()), (op,))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_told_by_their_entities(world: World, version: int) -> None:
    alice, everybody = (("user", "alice"),), (("user", None),)
    spark, both, default = (("client-id", "spark"),), (*alice, ("client-id", "spark")), (*everybody, ("client-id", None))
    assert world.described(version=version) == {alice: 5, everybody: 7, spark: 9, both: 11, default: 13}
    assert world.described(ComponentData("user", EXACT, "alice"), version=version) == {alice: 5, both: 11}
    assert world.described(ComponentData("user", EXACT, "alice"), strict=True) == {alice: 5}
    assert world.described(ComponentData("user", OF_DEFAULT)) == {everybody: 7, default: 13}
    assert world.described(ComponentData("client-id", ANY)) == {spark: 9, both: 11, default: 13}
    assert world.described(ComponentData("client-id", ANY), ComponentData("user", EXACT, "alice")) == {both: 11}
    assert world.described(ComponentData("ip", ANY)) == {}
    assert world.described(strict=True) == {}


def test_a_filter_that_makes_no_sense_is_refused(world: World) -> None:
    for components in (
        [ComponentData("", ANY)],
        [ComponentData("user", ANY), ComponentData("user", OF_DEFAULT)],
        [ComponentData("user", EXACT)],
        [ComponentData("user", ANY, "alice")],
        [ComponentData("user", 3)],
        [ComponentData("user", ANY), ComponentData("ip", ANY)],
    ):
        assert world.described(*components) == ErrorCode.INVALID_REQUEST
    assert world.described(ComponentData("group", ANY)) == ErrorCode.UNSUPPORTED_VERSION


def test_quotas_that_are_changed_hold_at_once_and_are_kept(world: World) -> None:
    assert world.alter(entry({"user": "alice"}, 100), entry({"client-id": None}, 200), entry({"user": None}, None)) == [0, 0, 0]
    assert world.quotas.quota("alice", "x") == (("alice", None), 100)
    again = ClientQuotas()
    QuotaFile(OsDisk(), OsWritableDisk(), str(world.path), world.endpoint.clock, again, print).load()
    left = {name: rate for name, rate in RATES.items() if name not in (("alice", None), ("*", None))}
    assert again.rates == left | {("alice", None): 100, (None, "*"): 200}
    assert world.alter(entry({"user": "bob"}), validate_only=True) == [0]
    assert ("bob", None) not in world.quotas.rates


def test_who_has_changed_which_quotas_is_told(world: World) -> None:
    world.alter(entry({"user": "alice"}, 100), entry({"user": None, "client-id": "spark"}), entry({"user": ""}))
    world.alter(entry({"client-id": "spark"}, None))
    world.alter(entry({"user": "bob"}), validate_only=True)
    who = "Principal = User:admin from host = 192.0.2.1 by AlterClientQuotas: of "
    assert world.endpoint.said == [
        f"{who}user alice set {RATE} to 100; of user *, client-id spark set {RATE} to 10",
        f"{who}client-id spark removed {RATE}",
    ]


def test_a_quota_of_producers_is_kept_and_told_beside_that_of_consumers(world: World) -> None:
    bob = ({"user": "alice"}, 100, "producer_byte_rate"), ({"user": "bob"}, 200, "producer_byte_rate")
    assert world.alter(*(entry(*one) for one in bob)) == [0, 0]
    assert world.quotas.producers.rates == {("alice", None): 100, ("bob", None): 200}
    assert world.quotas.rates == RATES
    alice = DescribeClientQuotasRequest((ComponentData("user", EXACT, "alice"),), strict=True)
    [found] = world.endpoint.ask(DESCRIBE_CLIENT_QUOTAS, 1, alice).entries
    assert [(one.key, one.value) for one in found.values] == [(RATE, 5.0), ("producer_byte_rate", 100.0)]
    assert world.alter(entry({"user": "bob"}, None, "producer_byte_rate")) == [0]
    assert world.described(ComponentData("user", EXACT, "bob")) == {}


def test_what_is_wrong_with_one_entity_changes_no_other(world: World) -> None:
    wrong = [
        entry({}),
        entry({"ip": "192.0.2.1"}),
        entry({"user": ""}),
        entry({"user": "*"}),
        entry({"user": "a"}, 0),
        entry({"user": "b"}, 1.5),
        entry({"user": "c"}, float("nan")),
        entry({"user": "d"}, float("inf")),
        entry({"user": "e"}, key="request_percentage"),
        entry({"user": "twice"}),
        entry({"user": "twice"}, 11),
        AlteredEntry((EntityData("user", "f"),), (OpData(RATE, 1), OpData(RATE, 2))),
        AlteredEntry((EntityData("user", "g"), EntityData("user", "h")), (OpData(RATE, 1),)),
    ]
    assert world.alter(*wrong, entry({"user": "bob"}, 3)) == [ErrorCode.INVALID_REQUEST] * len(wrong) + [0]
    assert world.quotas.rates == RATES | {("bob", None): 3}


def test_only_who_may_changes_quotas_and_only_where_they_are_in_a_file(world: World) -> None:
    world.be("nobody")
    assert world.described() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert world.alter(entry({"user": "bob"})) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    world.be("admin")
    context = world.endpoint.context
    world.endpoint.context = replace(context, acls=None)
    assert world.alter(entry({"user": "bob"})) == [ErrorCode.SECURITY_DISABLED]
    world.endpoint.context = replace(context, quotas=None, quota_file=None)
    assert world.described() == {}
    assert world.alter(entry({"user": "bob"})) == [ErrorCode.INVALID_REQUEST]
    assert world.quotas.rates == RATES


def test_a_file_that_cannot_be_written_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise Unreadable("the disk is full")

    monkeypatch.setattr(world.file.writable, "sync", fails)
    assert world.alter(entry({"user": "bob"}), entry({})) == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_REQUEST]
    assert "the disk is full" in world.endpoint.said[0]
    assert world.quotas.rates == RATES
