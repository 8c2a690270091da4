"""Kafka's own Java clients that say who they are, on every listener and with every mechanism, and Kafka's own authorizer."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random  # noqa: TID251  # seeded

import pytest
import real_kafka
from asked_endpoint import Endpoint
from certificates import Authority
from kafka_judge import oracle
from served_endpoint import served
from tiered_worlds import World
from tokens import Provider
from users_file import PASSWORDS, user_file

from local_log.os_disk import OsDisk, OsWritableDisk
from remote.clock import SystemClock, SystemRandomness
from tiering.endpoint.authentication.jwks import FileKeys
from tiering.endpoint.authentication.listener import Listener, sasl_config
from tiering.endpoint.authentication.principal_mapping import PrincipalMapping
from tiering.endpoint.authentication.tls import Tls, TlsConfig
from tiering.endpoint.authentication.token_verifier import TokenRules, TokenVerifier
from tiering.endpoint.authentication.users import UserFile
from tiering.endpoint.authorization.acl_file import AclFile, read_acls, write_acls
from tiering.endpoint.authorization.acls import Acl, Operation, PatternType, Permission, ResourceType
from tiering.endpoint.authorization.authorizer import AclIndex, Authorizer
from tiering.endpoint.quotas.client_quotas import ClientQuotas
from tiering.endpoint.quotas.quota_file import QuotaFile
from tiering.endpoint.request_context import KafkaPrincipal, SecurityProtocol
from tiering.endpoint.settings import Settings

_SOURCE = Path(__file__).parents[1] / "Secured.java"
_MODULES = "org.apache.kafka.common.security"

Ask = Callable[..., list[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secured")


@pytest.fixture(scope="module")
def ask(folder: Path) -> Iterator[Ask]:
    """The words that Kafka's classes answer."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with real_kafka.program(_SOURCE, arguments=(f"file:{folder}/token",), **pipes) as java:
        assert java.stdin
        assert java.stdout

        def asked(*words: object) -> list[str]:
            java.stdin.write(" ".join(map(str, words)) + "\n")
            java.stdin.flush()
            return java.stdout.readline().split()

        yield asked
        java.stdin.close()


class Site:
    """An endpoint with all listeners; alice may read one topic, and admin may do everything."""

    def __init__(self, folder: Path, endpoint: Endpoint) -> None:
        self.folder, self.endpoint = folder, endpoint
        self.authority, self.provider = Authority(folder), Provider()
        self.provider.write_keys(folder / "keys.json")
        own = self.authority.signed("CN=localhost", "server.pem")
        mapping = PrincipalMapping.of("RULE:^CN=([^,]*).*$/$1/")
        self._tls = TlsConfig(own, own, self.authority.file, "none", mapping=mapping)
        self.addresses: dict[str, str] = {}

    def listener(
        self,
        protocol: SecurityProtocol,
        client_auth: str = "none",
        max_reauth_ms: int = 0,
        names: tuple[str, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    ) -> Listener:
        settings = Settings({"sasl.enabled.mechanisms": names, "connections.max.reauth.ms": max_reauth_ms})
        keys = FileKeys(OsDisk(), str(self.folder / "keys.json")).keys
        verify = TokenVerifier(keys, TokenRules("https://id.example", ("kafka",)), SystemClock()).verify
        sasl = sasl_config(settings, user_file(self.folder), verify, SystemRandomness()) if protocol.is_sasl else None
        config = replace(self._tls, client_auth=client_auth)
        return Listener(protocol, sasl, Tls(config, OsDisk(), self.endpoint.said.append) if protocol.is_encrypted else None)

    def client(self, listener: str, mechanism: str = "", password: str = "", own: str = "") -> Path:
        """The file of a client's properties."""
        protocol = listener.partition("+")[0]
        lines = {
            "bootstrap.servers": self.addresses[listener],
            "security.protocol": protocol,
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
            "request.timeout.ms": "20000",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.file,
        }
        if own:
            lines |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": own}
        if mechanism == "OAUTHBEARER":
            lines["sasl.login.callback.handler.class"] = f"{_MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
            lines["sasl.oauthbearer.token.endpoint.url"] = f"file:{self.folder}/token"
            lines["sasl.jaas.config"] = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;"
        elif mechanism:
            module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            lines["sasl.jaas.config"] = f'{_MODULES}.{module} required username="alice" password="{password}";'
        if mechanism:
            lines["sasl.mechanism"] = mechanism
        path = self.folder / "client.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        return path


@pytest.fixture(scope="module")
def site(world: World, folder: Path) -> Iterator[Site]:
    endpoint = Endpoint(world.folders["some archived dropped"], world.store)
    endpoint.clock.now = SystemClock().now_ms()
    found = Site(folder, endpoint)
    path = folder / "acls.json"
    path.write_bytes(write_acls([Acl(ResourceType.TOPIC, "g-epochs", "User:alice", Operation.READ)]))
    acls = AclFile(OsDisk(), OsWritableDisk(), str(path), SystemClock(), Authorizer(super_users=frozenset({"User:admin"})), print)
    acls.load()
    (folder / "quotas.json").write_text('{"format": 1, "quotas": []}')
    quotas = ClientQuotas()
    quota_file = QuotaFile(OsDisk(), OsWritableDisk(), str(folder / "quotas.json"), SystemClock(), quotas, print)
    quota_file.load()
    kept = {"acls": acls, "users": user_file(folder), "quotas": quotas, "quota_file": quota_file}
    endpoint.context = replace(endpoint.context, clock=SystemClock(), **kept)  # type: ignore[arg-type]
    listeners = {str(protocol): found.listener(protocol) for protocol in SecurityProtocol}
    listeners["SSL+mutual"] = found.listener(SecurityProtocol.SSL, "required")
    listeners["SASL_PLAINTEXT+short"] = found.listener(SecurityProtocol.SASL_PLAINTEXT, max_reauth_ms=1_500)
    listeners["SASL_PLAINTEXT+scram"] = found.listener(SecurityProtocol.SASL_PLAINTEXT, names=("SCRAM-SHA-512",))
    with ExitStack() as open_listeners:
        for name, of in listeners.items():
            host, port = open_listeners.enter_context(served(endpoint, of))
            found.addresses[name] = f"{host}:{port}"
        yield found


@oracle
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_client_says_who_it_is_and_reads_what_it_may(ask: Ask, site: Site, protocol: str, mechanism: str) -> None:
    (site.folder / "token").write_text(site.provider.token(SystemClock().now_ms(), scope="read"))
    config = site.client(protocol, mechanism, PASSWORDS["alice"])
    assert ask("topics", config) == ["g-epochs"]
    assert ask("read", config, "g-epochs", 500) == ["500"]
    assert ask("read", config, "g-txn", 0)[0] == "TopicAuthorizationException"
    assert ask("acls", config)[0] == "ClusterAuthorizationException"


@oracle
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_told(ask: Ask, site: Site, mechanism: str) -> None:
    told = ask("topics", site.client("SASL_SSL", mechanism, "guessed"))
    assert (told[0], "guessed" in " ".join(told)) == ("SaslAuthenticationException", False)
    assert not any("guessed" in message for message in site.endpoint.said)


@oracle
def test_a_token_that_has_expired_or_is_of_another_issuer_is_told(ask: Ask, site: Site) -> None:
    now_ms = SystemClock().now_ms()
    for claims in ({"exp": now_ms // 1000 - 40}, {"iss": "https://other.example"}):
        (site.folder / "token").write_text(site.provider.token(now_ms, scope="read", **claims))
        told = ask("topics", site.client("SASL_SSL", "OAUTHBEARER"))
        assert (told[0], "invalid_token" in " ".join(told)) == ("SaslAuthenticationException", True)


@oracle
def test_a_mechanism_that_is_not_enabled_is_told(ask: Ask, site: Site) -> None:
    told = ask("topics", site.client("SASL_PLAINTEXT+scram", "PLAIN", PASSWORDS["alice"]))
    assert (told[0], "SCRAM-SHA-512" in " ".join(told)) == ("UnsupportedSaslMechanismException", True)


@oracle
@pytest.mark.slow
def test_a_consumer_authenticates_anew_before_its_session_ends(ask: Ask, site: Site) -> None:
    config = site.client("SASL_PLAINTEXT+short", "SCRAM-SHA-512", PASSWORDS["alice"])
    assert int(ask("go-on", config, "g-epochs", 500, 4_000)[0]) >= 2
    assert not any("session expired" in message for message in site.endpoint.said)


@oracle
def test_a_client_is_who_its_certificate_says(ask: Ask, site: Site) -> None:
    alice = site.authority.signed("CN=alice,O=Example", "alice.pem")
    assert ask("topics", site.client("SSL+mutual", own=alice)) == ["g-epochs"]
    assert ask("topics", site.client("SSL+mutual"))[0] == "SslAuthenticationException"
    assert ask("topics", site.client("SSL")) == []
    assert ask("topics", site.client("PLAINTEXT")) == []


@oracle
def test_acls_are_created_and_counted_by_kafka_s_admin_client(ask: Ask, site: Site) -> None:
    admin = site.client("SSL+mutual", own=site.authority.signed("CN=admin", "admin.pem"))
    assert len(ask("topics", admin)) == 15
    before = int(ask("acls", admin)[0])
    assert ask("create", admin, "TOPIC", "g-b", "PREFIXED", "User:bob", "*", "READ", "ALLOW") == ["created"]
    assert ask("acls", admin) == [str(before + 1)]
    kept = read_acls((site.folder / "acls.json").read_bytes())
    assert Acl(ResourceType.TOPIC, "g-b", "User:bob", Operation.READ, pattern_type=PatternType.PREFIXED) in kept
    bob = site.authority.signed("CN=bob", "bob.pem")
    assert ask("topics", site.client("SSL+mutual", own=bob)) == ["g-big"]


@oracle
def test_users_and_quotas_are_changed_and_told_by_kafka_s_admin_client(ask: Ask, site: Site) -> None:
    admin = site.client("SSL+mutual", own=site.authority.signed("CN=admin", "admin.pem"))
    assert ask("users", admin) == sorted(PASSWORDS)
    assert ask("set-user", admin, "carol", "sings") == ["set"]
    assert ask("users", admin) == sorted([*PASSWORDS, "carol"])
    assert user_file_of(site).has_password("carol", "sings")
    assert ask("set-quota", admin, "carol", 1 << 20) == ["set"]
    assert ask("quotas", admin) == ["{user=carol}={consumer_byte_rate=1048576.0}"]
    assert ask("set-quota", admin, "carol", 0.5)[0] == "InvalidRequestException"
    alice = site.client("SSL+mutual", own=site.authority.signed("CN=alice", "alice.pem"))
    for words in (("users", alice), ("quotas", alice), ("set-user", alice, "eve", "x"), ("set-quota", alice, "eve", 5)):
        assert ask(*words)[0] == "ClusterAuthorizationException"


def user_file_of(site: Site) -> UserFile:
    return UserFile(OsDisk(), OsWritableDisk(), str(site.folder / "users.json"), b"secret")


def random_acl(random: Random) -> Acl:
    return Acl(
        random.choice((ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)),
        random.choice(("*", "a", "ab", "abc", "abd", "b", "kafka-cluster")),
        random.choice(("User:*", "User:alice", "User:bob", "Group:alice")),
        random.choice([one for one in Operation if one >= Operation.ALL and one <= Operation.IDEMPOTENT_WRITE]),
        random.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
        random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        random.choice(("*", "192.0.2.1", "2001:db8:0:0:0:0:0:1")),
    )


@oracle
def test_random_acls_decide_as_kafka_s_authorizer_does(ask: Ask) -> None:
    random = Random(18)
    decided = {"ALLOWED": 0, "DENIED": 0}
    for _ in range(60):
        allows_unbound, acls = random.random() < 0.3, [random_acl(random) for _ in range(random.randrange(12))]
        ask("authorizer", "User:admin;User:root", str(allows_unbound).lower())
        for acl in acls:
            words = (acl.resource_type.name, acl.resource_name, acl.pattern_type.name, acl.principal, acl.host)
            ask("acl", *words, acl.operation.name, acl.permission.name)
        ours = Authorizer(AclIndex(acls), frozenset({"User:admin", "User:root"}), allows_unbound)
        for _ in range(50):
            of = random_acl(random)
            operation = random.choice([one for one in Operation if one >= Operation.READ and one <= Operation.IDEMPOTENT_WRITE])
            name = random.choice(("alice", "bob", "admin", "carol"))
            host = random.choice(("192.0.2.1", "192.0.2.2", "2001:db8::1"))
            (theirs,) = ask("may", f"User:{name}", host, operation.name, of.resource_type.name, of.resource_name)
            is_allowed = ours.authorize(KafkaPrincipal(name), host, operation, of.resource_type, of.resource_name)
            assert theirs == ("ALLOWED" if is_allowed else "DENIED"), (acls, name, host, operation, of)
            decided[theirs] += 1
    assert min(decided.values()) > 300, decided


@oracle
def test_random_fetches_are_throttled_for_as_long_as_by_kafka_s_quotas(ask: Ask) -> None:
    random, throttled = Random(18), 0
    for _ in range(30):
        bound, now_ms = random.choice((1_000, 50_000, 1 << 20)), 1_000_000
        ask("quota", bound)
        quotas = ClientQuotas({("alice", None): bound})
        for _ in range(60):
            now_ms += random.choice((0, 1, 90, 400, 999, 1_000, 1_001, 2_500, 12_000)) if random.random() < 0.7 else 0
            size = random.randrange(1, bound * random.choice((1, 3, 12)))
            (theirs,) = ask("record", size, now_ms)
            ours = quotas.throttle_ms("alice", "", size, now_ms)
            assert abs(ours - int(theirs)) <= 1, (bound, size, now_ms, theirs, ours)
            throttled += ours > 0
    assert 200 < throttled < 1_600, throttled
