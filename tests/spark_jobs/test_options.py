"""The options of the data source: text in, values out, and messages that name the option."""

import json

import pytest

from spark_jobs.source.options import EARLIEST, LATEST, Offsets, OptionError, ReadOptions, parse

NEEDED = {"archive": "s3://bucket/prefix", "subscribe": "orders"}


def of(**options: str) -> ReadOptions:
    return parse({**NEEDED, **options})


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    assert parse(NEEDED) == ReadOptions(
        archive="s3://bucket/prefix",
        keys=None,
        topics=("orders",),
        starting_offsets=Offsets(EARLIEST),
        ending_offsets=Offsets(LATEST),
        starting_timestamp=None,
        ending_timestamp=None,
        latest_when_no_match=False,
        fail_on_data_loss=True,
        min_partitions=None,
        include_headers=False,
        read_committed=False,
    )


def test_every_option_is_read() -> None:
    options = of(
        subscribe="b, a,,b",
        startingOffsets='{"a": {"0": 5, "1": -2}}',
        endingOffsets='{"a": {"0": -1, "1": 7}}',
        startingTimestamp="1000",
        endingTimestamp="2000",
        startingOffsetsByTimestampStrategy="latest",
        failOnDataLoss="false",
        minPartitions="8",
        includeHeaders="true",
        keys="aws-kms://alias/archive",
        **{"kafka.isolation.level": "read_committed"},
    )
    assert options.keys == "aws-kms://alias/archive"
    assert options.topics == ("b", "a")
    assert [options.starting_offsets.of("a", p, "startingOffsets") for p in (0, 1)] == [5, EARLIEST]
    assert [options.ending_offsets.of("a", p, "endingOffsets") for p in (0, 1)] == [LATEST, 7]
    assert (options.starting_timestamp, options.ending_timestamp, options.min_partitions) == (1000, 2000, 8)
    assert options.latest_when_no_match
    assert not options.fail_on_data_loss
    assert options.include_headers
    assert options.read_committed


def test_names_and_words_are_read_without_regard_to_case() -> None:
    """Spark hands over the names in lower case."""
    options = parse({"ARCHIVE": " /archive ", "Subscribe": "a", "startingoffsets": "EARLIEST", "INCLUDEHEADERS": "True"})
    assert (options.archive, options.topics, options.include_headers) == ("/archive", ("a",), True)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("startingOffset", "did you mean startingOffsets?"),
        ("kafka.isolation_level", "did you mean kafka.isolation.level?"),
        ("minPartition", "did you mean minPartitions?"),
        ("kafka.bootstrap.servers", "there are archive, subscribe"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_known_one(name: str, hint: str) -> None:
    with pytest.raises(OptionError) as refused:
        of(**{name: "1"})
    assert f"option {name} is unknown" in str(refused.value)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("startingOffsets", "latest"),
        ("startingOffsets", "first"),
        ("startingOffsets", ""),
        ("keys", " "),
        ("startingOffsets", "5"),
        ("startingOffsets", "null"),
        ("startingOffsets", '{"orders": 5}'),
        ("startingOffsets", '{"orders": {"0": -1}}'),
        ("startingOffsets", '{"orders": {"0": -3}}'),
        ("startingOffsets", '{"orders": {"zero": 1}}'),
        ("startingOffsets", '{"orders": {"0": null}}'),
        ("startingOffsets", '{"orders": {"0": '),
        ("endingOffsets", "earliest"),
        ("endingOffsets", '{"orders": {"0": -2}}'),
        ("startingTimestamp", "yesterday"),
        ("startingTimestamp", "-1"),
        ("endingTimestamp", "1.5"),
        ("startingOffsetsByTimestampStrategy", "earliest"),
        ("failOnDataLoss", "maybe"),
        ("minPartitions", "0"),
        ("minPartitions", "many"),
        ("includeHeaders", "1"),
        ("kafka.isolation.level", "serializable"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_the_options_name_and_the_value(name: str, value: str) -> None:
    with pytest.raises(OptionError) as refused:
        of(**{name: value})
    assert f"option {name} is {value!r}" in str(refused.value)


@pytest.mark.parametrize("name", ["archive", "subscribe"])
@pytest.mark.parametrize("value", [None, "", " ", ","])
def test_a_needed_option_that_is_missing_is_named(name: str, value: str | None) -> None:
    if (name, value) == ("archive", ","):
        return
    options = {k: v for k, v in {**NEEDED, name: value}.items() if v is not None}
    with pytest.raises(OptionError, match=f"option {name} is missing"):
        parse(options)


def test_offsets_that_leave_a_partition_out_name_it_and_say_what_would_do() -> None:
    offsets = of(startingOffsets='{"orders": {"0": 5}}').starting_offsets
    with pytest.raises(OptionError, match=r"startingOffsets names no offset for orders-1.*-2 is earliest"):
        offsets.of("orders", 1, "startingOffsets")


@pytest.mark.parametrize("value", ["[1]", "5", "null", "first", "{", '{"orders": 5}', '{"orders": [5]}', "[" * 100_000])
@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets"])
def test_offsets_of_another_form_are_refused_with_the_form_that_would_do(name: str, value: str) -> None:
    with pytest.raises(OptionError) as refused:
        of(**{name: value})
    assert 'expected earliest, latest or an offset for each partition as JSON, such as {"topic":{"0":23}}' in str(refused.value)


@pytest.mark.parametrize("partition", ["zero", "-1", " 1", "1_0", ""])
def test_a_partition_that_is_no_number_is_named(partition: str) -> None:
    with pytest.raises(OptionError, match=f"'{partition}' is no partition"):
        of(startingOffsets=json.dumps({"orders": {partition: 1}}))


@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets"])
def test_offsets_of_topics_that_are_not_subscribed_are_refused_by_name(name: str) -> None:
    with pytest.raises(OptionError) as refused:
        of(**{name: '{"orders": {"0": 5}, "b": {"0": 5}, "a": {}}'})
    assert f"option {name} is " in str(refused.value)
    assert "not subscribed: a, b; leave them out" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("startingOffsetsByTimestamp", "startingTimestamp"),
        ("endingOffsetsByTimestamp", "endingTimestamp"),
        ("endingoffsetsbytimestamp", "endingTimestamp"),
    ],
)
def test_offsets_by_timestamp_are_not_supported_and_the_nearest_option_is_named(name: str, instead: str) -> None:
    with pytest.raises(OptionError, match=f"{name} is not supported.*use {instead},"):
        of(**{name: '{"orders": {"0": 1000}}'})
