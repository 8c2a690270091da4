import pytest

from local_log.errors import Invalid
from tiering.endpoint.authentication.principal_mapping import PrincipalMapping
from tiering.endpoint.authentication.sasl_server import SaslFailed

ADMIN = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
CASES = [
    ("DEFAULT", ADMIN, ADMIN),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", ADMIN, "Duke"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L", ADMIN, "duke@serviceusers"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/U , DEFAULT", ADMIN, "DUKE@SERVICEUSERS"),
    ("RULE:^cn=nobody$/x/,RULE:^CN=([^,]+).*$/$1/", ADMIN, "Duke"),
    ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", "CN=kafka.example,O=Org", "kafka.example"),
    ("RULE:CN=(.*?),.*/$1$2\\$1/", ADMIN, "Duke$2$1"),
    ("RULE:CN=(.*?),.*/$12/", ADMIN, "Duke2"),
    ("RULE:CN=(.*?)\\/(.*)/$2-$1/", "CN=kafka/host", "host-kafka"),
]


@pytest.mark.parametrize(("rules", "subject", "name"), CASES)
def test_the_first_rule_for_the_whole_subject_makes_the_name(rules: str, subject: str, name: str) -> None:
    assert PrincipalMapping.of(rules).name(subject) == name


def test_a_subject_that_no_rule_is_for_is_nobody() -> None:
    with pytest.raises(SaslFailed, match="no rule of ssl"):
        PrincipalMapping.of("RULE:^CN=(.*?),OU=Admins.*$/$1/").name(ADMIN)


@pytest.mark.parametrize("rules", ["default", "RULE:a/b", "RULE:(/b/", "DEFAULT DEFAULT", "RULE:a/b/X", "DEFAULT,RULE:"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(Invalid, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping.of(rules)
