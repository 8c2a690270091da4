"""The options of the data source: text in, values out, and messages that name the option."""

import json

import pytest

from spark_jobs.errors import OptionError
from spark_jobs.source.limits import EARLIEST, LATEST, Offsets, Times
from spark_jobs.source.options import Assign, ReadOptions, Subscribe, SubscribePattern, parse

NEEDED = {"archive": "s3://bucket/prefix", "subscribe": "orders"}


def of(**options: str) -> ReadOptions:
    return parse({**NEEDED, **options})


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    assert parse(NEEDED) == ReadOptions(
        archive="s3://bucket/prefix",
        keys=None,
        strategy=Subscribe(("orders",)),
        starting=Offsets(EARLIEST),
        ending=Offsets(LATEST),
        latest_when_no_match=False,
        fail_on_data_loss=True,
        min_partitions=None,
        max_records_per_partition=None,
        include_headers=False,
        read_committed=False,
        as_of_version=None,
        as_of_timestamp=None,
        pushdown=False,
        bytes_per_split=128 << 20,
        pin_hours=24,
    )


def test_a_stream_starts_where_sparks_kafka_source_starts() -> None:
    assert parse(NEEDED, streaming=True).starting == Offsets(LATEST)
    assert parse({**NEEDED, "startingOffsets": '{"orders": {"0": -1}}'}, streaming=True).starting.of("orders", 0, "") == LATEST


def test_every_option_is_read() -> None:
    options = of(
        subscribe="b, a,,b",
        startingOffsets='{"a": {"0": 5, "1": -2}}',
        endingOffsets='{"a": {"0": -1, "1": 7}}',
        startingOffsetsByTimestampStrategy="latest",
        failOnDataLoss="false",
        minPartitions="8",
        maxRecordsPerPartition="1000",
        asOfVersion="17",
        pushdown="true",
        bytesPerSplit="1048576",
        pinHours="0",
        includeHeaders="true",
        keys="aws-kms://alias/archive",
        **{"kafka.isolation.level": "read_committed"},
    )
    assert options.keys == "aws-kms://alias/archive"
    assert options.strategy == Subscribe(("b", "a"))
    assert [options.starting.of("a", p, "startingOffsets") for p in (0, 1)] == [5, EARLIEST]
    assert [options.ending.of("a", p, "endingOffsets") for p in (0, 1)] == [LATEST, 7]
    assert (options.min_partitions, options.max_records_per_partition, options.bytes_per_split) == (8, 1000, 1 << 20)
    assert (options.as_of_version, options.pushdown, options.pin_hours) == (17, True, 0)
    assert options.latest_when_no_match
    assert not options.fail_on_data_loss
    assert options.include_headers
    assert options.read_committed


def test_names_and_words_are_read_without_regard_to_case() -> None:
    """Spark hands over the names in lower case."""
    options = parse({"ARCHIVE": " /archive ", "Subscribe": "a", "startingoffsets": "EARLIEST", "INCLUDEHEADERS": "True"})
    assert (options.archive, options.strategy, options.include_headers) == ("/archive", Subscribe(("a",)), True)


@pytest.mark.parametrize("end", ["starting", "ending"])
def test_a_time_for_all_comes_before_times_and_times_before_offsets(end: str) -> None:
    """What comes second is not even read, as in Spark's Kafka source."""
    given = {f"{end}Offsets": "nonsense", f"{end}OffsetsByTimestamp": '{"orders": {"0": 7}}', f"{end}Timestamp": "5"}

    def limit(*names: str) -> Offsets | Times:
        options = of(**{name: given[name] for name in names})
        return options.starting if end == "starting" else options.ending

    assert limit(*given) == Times(5)
    assert limit(f"{end}Offsets", f"{end}OffsetsByTimestamp") == Times(0, {"orders": {0: 7}})
    with pytest.raises(OptionError, match=f"option {end}Offsets is 'nonsense'"):
        limit(f"{end}Offsets")


def test_partitions_are_assigned_or_topics_subscribed_or_matched() -> None:
    archive = {"archive": "a"}
    assert parse({**archive, "assign": '{"b": [2, 0, 2], "a": [1]}'}).strategy == Assign({"b": (0, 2), "a": (1,)})
    assert parse({**archive, "subscribePattern": "ord.*"}).strategy == SubscribePattern("ord.*")
    with pytest.raises(OptionError, match="options assign and subscribe are given, and only one of assign, subscribe, "):
        of(assign='{"b": [0]}')


def test_versions_are_one_or_one_for_each_partition() -> None:
    assert of(asOfVersion='{"orders": {"0": 3, "1": 4}}').as_of_version == {"orders": {0: 3, 1: 4}}
    assert of(asOfTimestamp="1700000000000").as_of_timestamp == 1_700_000_000_000
    with pytest.raises(OptionError, match="asOfVersion and asOfTimestamp are both given"):
        of(asOfVersion="3", asOfTimestamp="5")


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minoffsetspertrigger", "maxTriggerDelay"])
def test_what_only_streams_have_is_passed_over_in_a_batch_as_by_sparks_kafka_source(name: str) -> None:
    assert of(**{name: "5"}) == parse(NEEDED)


@pytest.mark.parametrize(
    "name", ["kafka.bootstrap.servers", "kafka.group.id", "kafka.security.protocol", "groupIdPrefix", "fetchoffset.numretries"]
)
def test_what_is_meant_for_a_broker_is_refused_and_told_why(name: str) -> None:
    with pytest.raises(OptionError, match=rf"option {name} does not apply to the format tiering, which uses no broker"):
        of(**{name: "1"})


def test_start_and_end_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(OptionError, match="orders-1 would start at 7 and end at 5"):
        of(startingOffsets='{"orders": {"1": 7}}', endingOffsets='{"orders": {"1": 5}}')
    with pytest.raises(OptionError, match="only one of them names orders-1"):
        of(startingOffsetsByTimestamp='{"orders": {"0": 7, "1": 5}}', endingOffsetsByTimestamp='{"orders": {"0": 7}}')
    of(startingOffsets='{"orders": {"0": 7}}', endingOffsets='{"orders": {"0": -1}}')


def test_what_is_said_of_a_partition_that_is_not_assigned_is_refused() -> None:
    with pytest.raises(OptionError, match=r"option startingOffsets is .*a-1, which is not assigned"):
        parse({"archive": "a", "assign": '{"a": [0]}', "startingOffsets": '{"a": {"0": 5, "1": 5}}'})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("startingOffset", "did you mean startingOffsets?"),
        ("kafka.isolation_level", "did you mean kafka.isolation.level?"),
        ("minPartition", "did you mean minPartitions?"),
        ("colour", "there are archive, assign, subscribe"),
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
        ("startingOffsetsByTimestamp", '{"orders": 5}'),
        ("endingOffsetsByTimestamp", '{"orders": {"0": -1}}'),
        ("maxRecordsPerPartition", "0"),
        ("asOfVersion", "0"),
        ("asOfVersion", '{"orders": {"0": "x"}}'),
        ("asOfTimestamp", "soon"),
        ("pushdown", "yes"),
        ("bytesPerSplit", "100"),
        ("pinHours", "169"),
        ("pinHours", "-1"),
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


@pytest.mark.parametrize("value", ["-1", "soon", "169", "8d"])
def test_a_number_alone_is_of_hours_where_a_pin_is_too_long_or_makes_no_sense(value: str) -> None:
    with pytest.raises(OptionError, match=r"expected hours, 0 \(no pin\) to 168, or a duration such as 36h or 7d$"):
        of(pinHours=value)


@pytest.mark.parametrize("name", ["archive", "subscribe"])
@pytest.mark.parametrize("value", [None, "", " ", ","])
def test_a_needed_option_that_is_missing_is_named(name: str, value: str | None) -> None:
    if (name, value) == ("archive", ","):
        return
    options = {k: v for k, v in {**NEEDED, name: value}.items() if v is not None}
    with pytest.raises(OptionError, match=f"option {name} is missing"):
        parse(options)


def test_offsets_that_leave_a_partition_out_name_it_and_say_what_would_do() -> None:
    offsets = of(startingOffsets='{"orders": {"0": 5}}').starting
    with pytest.raises(OptionError, match=r"startingOffsets has no offset for orders-1.*-2 is earliest"):
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
    ("name", "value"),
    [
        ("assign", ""), ("assign", "{}"), ("assign", '{"a": []}'), ("assign", '{"a": [-1]}'), ("assign", '{"a": ["0"]}'),
        ("assign", "[1]"), ("subscribePattern", ""), ("subscribePattern", "("),
    ],
)  # fmt: skip
def test_partitions_that_cannot_be_are_refused(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"option {name} is"):
        parse({"archive": "a", name: value})
