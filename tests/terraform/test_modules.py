"""The modules' blocks: variables that say what they are and refuse nonsense, outputs that say what they are, alarms that ring."""

import re
from typing import Any

import pytest
from modules import EXAMPLES, MODULES, Block, folder, labelled, parsed, templates, text_of

ALL = [*MODULES, *EXAMPLES]
WITHOUT_A_RULE = {
    "tags",  # AWS says what is wrong with them
    "readers_pin",  # a bool is one of two
    "access_logs",
    "permissions_boundary_arn",
    "bucket",  # the monitoring's: the bucket is there already
}
"""Variables that every value of their type is right for, or of which only AWS can say."""


@pytest.mark.parametrize("name", ALL)
def test_every_variable_has_a_type_and_a_description(name: str) -> None:
    for variable in labelled(name, "variable").values():
        assert variable["type"] not in ("any", "${any}")
        assert variable["description"].endswith(".")


@pytest.mark.parametrize("name", MODULES)
def test_every_variable_is_validated_or_cannot_be(name: str) -> None:
    assert {label for label, body in labelled(name, "variable").items() if "validation" not in body} <= WITHOUT_A_RULE


@pytest.mark.parametrize("name", ALL)
def test_every_message_of_a_validation_says_what_to_give(name: str) -> None:
    for body in labelled(name, "variable").values():
        for rule in body.get("validation", []):
            assert rule["error_message"].endswith(".")
            assert len(rule["error_message"]) > 10


@pytest.mark.parametrize("name", ALL)
def test_every_output_is_described(name: str) -> None:
    assert labelled(name, "output")
    assert all(body["description"].endswith(".") for body in labelled(name, "output").values())


@pytest.mark.parametrize("name", ALL)
def test_no_variable_is_idle_and_none_is_missing(name: str) -> None:
    used = set(re.findall(r"\bvar\.([a-z0-9_]+)", text_of(name)))
    assert used == set(labelled(name, "variable"))


@pytest.mark.parametrize("name", ALL)
def test_no_local_value_is_idle_and_none_is_missing(name: str) -> None:
    declared = {label for block in parsed(name).get("locals", []) for label in block}
    assert set(re.findall(r"\blocal\.([a-z0-9_]+)", text_of(name))) == declared


@pytest.mark.parametrize("name", ALL)
def test_releases_of_terraform_and_of_the_provider_are_stated(name: str) -> None:
    [block] = parsed(name)["terraform"]
    assert block["required_version"] == ">= 1.5"
    [providers] = block["required_providers"]
    assert re.search(r"hashicorp/aws", str(providers["aws"]))


@pytest.mark.parametrize("name", ["bucket", "iam"])
def test_every_policy_is_used(name: str) -> None:
    assert sorted(re.findall(r"policies/([a-z_]+)\.json\.tftpl", text_of(name))) == templates(name)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_each_module_what_it_takes(name: str) -> None:
    for block in parsed(name)["module"]:
        for given in block.values():
            module = given["source"].rpartition("/")[2]
            variables = labelled(module, "variable")
            required = {label for label, body in variables.items() if "default" not in body}
            assert required <= given.keys() - {"source"} <= variables.keys()


def test_an_example_asks_modules_only_for_what_they_give() -> None:
    for name in EXAMPLES:
        for module, output in re.findall(r"module\.([a-z]+)\.([a-z_]+)", text_of(name)):
            assert output in labelled(module, "output")


def test_the_complete_example_uses_every_module() -> None:
    assert {label for block in parsed("complete")["module"] for label in block} == set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_readme_names_every_variable_and_every_output(name: str) -> None:
    text = (folder(name) / "README.md").read_text()
    assert [label for kind in ("variable", "output") for label in labelled(name, kind) if f"`{label}`" not in text] == []


def alarms() -> dict[str, Block]:
    return {
        label: body
        for block in parsed("monitoring")["resource"]
        for label, body in block.get("aws_cloudwatch_metric_alarm", {}).items()
    }


def test_every_alarm_tells_somebody_when_it_goes_off_and_when_it_is_over() -> None:
    assert alarms().keys() == {"s3_errors", "service"}
    for alarm in alarms().values():
        assert alarm["alarm_actions"] == alarm["ok_actions"] == "${var.alarm_actions}"
        assert alarm["alarm_description"] == "${each.value.description}"


def test_errors_of_s3_are_told_as_a_share_of_its_requests_by_the_filter_that_is_made() -> None:
    ids = {query["id"]: query for query in alarms()["s3_errors"]["metric_query"]}
    assert ids["percent"]["expression"] == "100 * errors / requests"
    for query in ("errors", "requests"):
        [metric] = ids[query]["metric"]
        assert metric["namespace"] == "AWS/S3"
        assert metric["dimensions"] == {"BucketName": "${var.bucket}", "FilterId": "${local.filter_id}"}
    [counted] = [body for block in parsed("monitoring")["resource"] for body in block.get("aws_s3_bucket_metric", {}).values()]
    assert counted["name"] == "${local.filter_id}"


def test_a_copy_lag_that_nobody_tells_any_more_is_an_alarm_and_the_others_are_not() -> None:
    default: dict[str, Any] = labelled("monitoring", "variable")["metrics"]["default"]
    assert default["copy-lag"]["alarms_if_silent"] is True
    assert {name for name, metric in default.items() if metric.get("alarms_if_silent")} == {"copy-lag"}
    errors = {"copy-errors", "fetch-errors", "delete-errors"}
    assert {"copy-lag", "delete-lag", "offsets-lost", "store-failing", *errors} == default.keys()
    assert alarms()["service"]["treat_missing_data"] == '${each.value.alarms_if_silent ? "breaching" : "notBreaching"}'
