"""What clients are called by their certificates, as Kafka calls them."""

from base64 import b64decode

import pytest
from distinguished_names import MAPPED, SUBJECTS
from kafka_judge import Judge, oracle

from tiering.endpoint.authentication.principal_mapping import PrincipalMapping

ALL_RULES = "RULE:^CN=([^,]+),.*$/$1/U,RULE:^([^C]*)=(.*)$/$2 of $1/L,DEFAULT"


def judged(kafka: Judge, rules: str, subject: bytes) -> str:
    """The name by Kafka's SslPrincipalMapper, of a subject in DER or as text."""
    word, name = kafka.ask("principal", rules.encode(), subject)
    assert word == "ok", name
    return b64decode(name).decode()


@oracle
def test_kafka_calls_subjects_what_we_do(kafka: Judge) -> None:
    for subject, text in SUBJECTS.items():
        assert judged(kafka, "DEFAULT", subject) == text
        assert judged(kafka, ALL_RULES, subject) == PrincipalMapping.of(ALL_RULES).name(text)


@oracle
@pytest.mark.parametrize(("rules", "subject", "name"), MAPPED)
def test_kafka_makes_the_same_names_of_subjects(kafka: Judge, rules: str, subject: str, name: str) -> None:
    assert judged(kafka, rules, subject.encode()) == name
