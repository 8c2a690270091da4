import pytest
from distinguished_names import MAPPED

from local_log.errors import Invalid
from tiering.endpoint.authentication.principal_mapping import PrincipalMapping
from tiering.endpoint.authentication.sasl_server import SaslFailed


@pytest.mark.parametrize(("rules", "subject", "name"), MAPPED)
def test_the_first_rule_for_the_whole_subject_makes_the_name(rules: str, subject: str, name: str) -> None:
    assert PrincipalMapping.of(rules).name(subject) == name


def test_a_subject_that_no_rule_is_for_is_nobody() -> None:
    with pytest.raises(SaslFailed, match="no rule of ssl"):
        PrincipalMapping.of("RULE:^CN=(.*?),OU=Admins.*$/$1/").name("CN=Duke,OU=ServiceUsers,O=Org,C=US")


@pytest.mark.parametrize("rules", ["default", "RULE:a/b", "RULE:(/b/", "DEFAULT DEFAULT", "RULE:a/b/X", "DEFAULT,RULE:"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(Invalid, match=r"ssl\.principal\.mapping\.rules"):
        PrincipalMapping.of(rules)
