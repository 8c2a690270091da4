"""Names, defaults and bounds held against Kafka's own ConfigDef, and properties against Java's own reader."""

from base64 import b64decode
from sys import float_info

import pytest
from config_files import loaded, problems
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka_judge import Judge, oracle

from tiering.config.assignment import BadConfig
from tiering.config.names import NOT_HERE
from tiering.config.properties_file import pairs
from tiering.config.settings import NAMES
from tiering.config.shared import variable_of
from tiering.config.topics import OF_TOPICS, SYNONYMS, defaults
from tiering.endpoint.settings import SETTINGS

OURS = ("agent.", "archive.", "deletion.", "own.", "scrub.", "sweep.", "topics.")
OTHERWISE = {
    "log.dirs": "Kafka's is null here, which its log.dir makes up for with a folder of its own",
    "remote.log.manager.copier.thread.pool.size": "each holds up to 64 MiB of a segment while it is encrypted",
    "remote.storage.enable": "no cluster here keeps topics out of an archive until somebody lets them in",
}
"""Where our default is not Kafka's, and why."""

NARROWER = {
    "log.cleaner.io.buffer.load.factor": (0.01, 1),  # at 0 the map holds no key, above 1 more than fit into it
    "log.cleaner.io.max.bytes.per.second": (1, float_info.max),  # at 0 or less, a cleaner that has read once never goes on
    "remote.log.manager.copier.thread.pool.size": (1, 64),  # as above
}
"""Where our bounds are narrower than Kafka's."""

WIDER = {("log.cleaner.threads", "0")}
"""What only we take: Kafka's own bound is 0, but its broker then divides by it; here, no thread cleans."""

VALUES = (
    "0", "1", "-1", "-2", "-3", "5", "+5", " 7 ", "1_0", "0x10", "1.5", "1e3", "0.5", "0.51", "-0.1", "", "x", "true", "TRUE",
    "yes",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "2147483648", "delete", "compact", "delete,compact",
    "delete,shred",
)  # fmt: skip


def whose(name: str) -> str:
    return "topic" if name in OF_TOPICS else "broker"


FOLDERS = ("log.dirs", "metadata.log.dir")
KAFKAS = tuple(name for name in (*NAMES, *OF_TOPICS) if not name.startswith(OURS) and name not in SETTINGS)

OF_NO_BROKER = {
    "endpoint.groups.max.bytes", "endpoint.http.address", "endpoint.http.names", "fetch.chunk.cache.size",
    "super.users", "allow.everyone.if.no.acl.found",  # of Kafka's authorizer, which reads them by itself
    "ssl.keystore.key.location",  # Kafka has the key in the keystore
    "endpoint.transactions.max.bytes", "storage.min.free.bytes", "write.caching",
}  # fmt: skip
ENDPOINT_OTHERWISE = {
    "queued.max.request.bytes": "Kafka bounds requests by their number",
    "max.connections": "a process has so many descriptors",
    "max.connections.per.ip": "as above",
    "num.io.threads": "a thread of Python answers one request at a time",
    "sasl.enabled.mechanisms": "there is no GSSAPI here",
    "socket.send.buffer.bytes": "an answer of 1 MiB is sent by one call",
    "sasl.oauthbearer.expected.audience": "nothing stands for an empty list",
    "ssl.keystore.type": "there is no other",
    "ssl.truststore.type": "there is no other",
}
"""Where the endpoint's default is not Kafka's, and why."""
ENDPOINT_NARROWER = {
    "auto.create.topics.enable", "transaction.state.log.segment.bytes",
    "connections.max.idle.ms", "connections.max.reauth.ms", "group.initial.rebalance.delay.ms", "group.max.session.timeout.ms",
    "group.min.session.timeout.ms", "offset.metadata.max.bytes", "offsets.topic.segment.bytes", "queued.max.request.bytes",
    "sasl.enabled.mechanisms", "sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.refresh.ms", "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.sub.claim.name", "sasl.server.max.receive.size", "socket.send.buffer.bytes", "ssl.enabled.protocols",
    "ssl.keystore.type", "ssl.truststore.type",
}  # fmt: skip
"""What the endpoint refuses and Kafka takes: values below 0, segments of a few bytes, and words that mean nothing here."""
ENDPOINT_WIDER = {
    "connections.max.idle.ms": "Kafka wants it above connection.failed.authentication.delay.ms",
    "group.consumer.heartbeat.interval.ms": "Kafka wants it between its bounds for groups that have one of their own",
    "group.consumer.session.timeout.ms": "as above",
    "group.consumer.max.assignment.interval.ms": "Kafka wants its own value within these bounds, too",
    "group.consumer.max.heartbeat.interval.ms": "as above",
    "group.consumer.max.session.timeout.ms": "as above",
    "max.connections.per.ip": "Kafka takes 0 only with overrides",
    "queued.max.request.bytes": "Kafka wants it at or above socket.request.max.bytes",
}
"""What the endpoint takes and Kafka refuses."""


def java(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def is_same(ours: object, theirs: str) -> bool:
    return float(theirs) == ours if isinstance(ours, float) else java(ours) == theirs


def is_within(value: str, bounds: tuple[float, float] | None) -> bool:
    return bounds is None or bounds[0] <= float(value) <= bounds[1]


@oracle
@pytest.mark.parametrize("name", KAFKAS)
def test_each_default_is_kafka_s_or_one_of_those_that_are_said_to_be_otherwise(kafka: Judge, name: str) -> None:
    word, *answer = kafka.ask("setting", whose(name), name)
    assert word == "ok", answer
    ours = defaults()[name] if name in OF_TOPICS else getattr(loaded(None).settings, name.replace(".", "_"))
    assert is_same(ours, b64decode(answer[0]).decode()) is (name not in OTHERWISE)


@oracle
def test_kafka_knows_every_name_that_is_said_to_be_its_own(kafka: Judge) -> None:
    for name in sorted(NOT_HERE | SYNONYMS.keys()):
        of = "topic" if name == "remote.log.delete.on.disable" else whose(name)
        word, *answer = kafka.ask("setting", of, name)
        assert word == "ok", (name, answer)
        if name == "log.dir" or name.endswith((".ms", ".minutes")):
            continue
        assert b64decode(answer[0]).decode() != "null" or name.endswith(("class.name", "class.path", "listener.name")), name


@oracle
@pytest.mark.parametrize("name", [name for name in KAFKAS if name not in FOLDERS])
def test_kafka_and_we_take_and_refuse_the_same_values(kafka: Judge, name: str) -> None:
    for value in VALUES:
        if not value.strip():
            continue  # an empty variable is not given
        word, *answer = kafka.ask("setting", whose(name), name, value.encode())
        is_taken = is_within(value, NARROWER.get(name)) if word == "ok" else (name, value) in WIDER
        if not is_taken:
            assert problems(None, {variable_of(name): value}), value
            continue
        config = loaded(None, {variable_of(name): value})
        ours = config.of("t", name) if name in OF_TOPICS else getattr(config.settings, name.replace(".", "_"))
        theirs = b64decode(answer[0]).decode() if word == "ok" else value
        assert is_same(ours, theirs), value


def ask(kafka: Judge, name: str, *value: bytes) -> str | None:
    """A broker's value, None if it refuses it."""
    word, *answer = kafka.ask("setting", "broker", name, *value)
    return b64decode(answer[0]).decode() if word == "ok" else None


@oracle
@pytest.mark.parametrize("name", SETTINGS)
def test_the_endpoint_takes_what_a_broker_takes_or_is_said_to_differ(kafka: Judge, name: str) -> None:
    default = ask(kafka, name)
    assert (default is None) is (name in OF_NO_BROKER)
    if default is None:
        return
    text = SETTINGS[name].text(SETTINGS[name].default) or "null"
    kafkas = "null" if default == "" else default.strip("[]").replace(", ", ",")
    assert (text == kafkas) is (name not in ENDPOINT_OTHERWISE)
    refused, wider = set(), set()
    for value in filter(str.strip, VALUES):
        theirs = ask(kafka, name, value.encode())
        try:
            ours = loaded(None, {variable_of(name): value}).settings
        except BadConfig:
            refused |= {value} if theirs is not None else set()
            continue
        if theirs is None:
            wider.add(value)
        else:
            assert is_same(getattr(ours, name.replace(".", "_")), theirs), value
    assert bool(refused) is (name in ENDPOINT_NARROWER), refused
    assert bool(wider) is (name in ENDPOINT_WIDER), wider


@oracle
def test_kafka_refuses_what_only_we_are_said_to_take(kafka: Judge) -> None:
    for name, value in WIDER:
        assert kafka.ask("setting", whose(name), name, value.encode())[0] == "refused", name


@oracle
@given(st.text(alphabet="ab=: \t\f\\\n\r#!u0041tn\xe9", max_size=30))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_properties_are_read_as_java_reads_them(kafka: Judge, text: str) -> None:
    word, *answer = kafka.ask("properties", text.encode("latin-1"))
    ours = [(name, value) for _, name, value in pairs(text)]
    if any(name is None or value is None for name, value in ours):
        assert word == "refused", text
        return
    assert word == "ok", (text, answer)
    words = [b64decode(w).decode() for w in answer[0].split(",")] if answer and answer[0] else []
    theirs = [*zip(words[::2], words[1::2], strict=True)]
    if text.endswith(("\\", "\\\n", "\\\r")):  # a lone backslash at the end is a nameless nothing to Java
        ours, theirs = ([pair for pair in of_one if pair[0]] for of_one in (ours, theirs))
    assert dict(ours) == dict(theirs)  # of a name that comes twice Java takes the last
