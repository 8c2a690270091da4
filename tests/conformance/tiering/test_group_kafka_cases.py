"""KAFKA_CASES.md and the tests that it names: neither says what the other does not have."""

from pathlib import Path

import pytest
from kafka_cases import Section, assert_every_case_has_a_test_or_a_reason, assert_every_case_is_listed_once, sections

LIST = Path(__file__).parent / "KAFKA_CASES.md"


def test_every_test_of_kafka_s_coordinator_is_listed_once() -> None:
    assert_every_case_is_listed_once(LIST)


@pytest.mark.parametrize("section", sections(LIST), ids=lambda section: section.title)
def test_every_test_of_groups_that_is_named_exists_and_every_other_case_has_a_reason(section: Section) -> None:
    assert_every_case_has_a_test_or_a_reason(section)
