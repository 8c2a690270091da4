"""The options of a stream."""

import pytest

from spark_jobs.errors import OptionError
from spark_jobs.source.limits import LATEST, Offsets, Times
from spark_jobs.source.stream.options import parse_stream

NEEDED = {"archive": "s3://bucket/archive", "subscribe": "orders"}


def test_a_stream_starts_at_latest_takes_all_and_waits_for_nothing_unless_it_is_told_otherwise() -> None:
    options = parse_stream(NEEDED)
    assert options.read.starting == Offsets(LATEST)
    assert (options.max_offsets, options.min_offsets, options.max_delay_ms, options.stop_at) == (None, None, 900_000, None)


def test_names_are_read_without_regard_to_case() -> None:
    options = parse_stream({**NEEDED, "MAXOFFSETSPERTRIGGER": "10", "minoffsetspertrigger": " 3 ", "maxTriggerdelay": "30s"})
    assert (options.max_offsets, options.min_offsets, options.max_delay_ms) == (10, 3, 30_000)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250", 250), ("250ms", 250), ("2 s", 2000), ("3m", 180_000), ("3min", 180_000), ("1h", 3_600_000), ("1d", 86_400_000),
        ("5000us", 5),
    ],
)  # fmt: skip
def test_a_delay_is_written_as_spark_writes_times(text: str, milliseconds: int) -> None:
    assert parse_stream({**NEEDED, "maxTriggerDelay": text}).max_delay_ms == milliseconds


@pytest.mark.parametrize(
    "starting",
    [
        {"startingOffsets": "earliest"},
        {"startingOffsets": '{"orders":{"0":5,"1":-1,"2":-2}}'},
        {"startingTimestamp": "1700000000000"},
        {"startingOffsetsByTimestamp": '{"orders":{"0":1700000000000}}'},
    ],
)
def test_it_may_start_at_all_that_a_batch_may_and_at_latest(starting: dict[str, str]) -> None:
    assert isinstance(parse_stream({**NEEDED, **starting}).read.starting, Offsets | Times)


def test_the_checkpoint_of_another_stream_says_where_to_start() -> None:
    text = '{"orders": {"0": 5}, "orders@PnJ1xkWtQ5aqcyLsLZ9iLA": {}}'
    assert parse_stream({**NEEDED, "startingOffsets": text}).read.starting == Offsets("", {"orders": {0: 5}})


@pytest.mark.parametrize(
    "name",
    ["endingOffsets", "endingtimestamp", "ENDINGOFFSETSBYTIMESTAMP", "asOfVersion", "asOfTimestamp", "pushdown", "pinHours"],
)
def test_what_has_no_meaning_in_a_stream_is_refused_by_name(name: str) -> None:
    with pytest.raises(OptionError, match=f"(?i)option {name} does not apply to streams: "):
        parse_stream({**NEEDED, name: "latest"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger is '0': must be 1 or more"),
        ({"minOffsetsPerTrigger": "few"}, "option minOffsetsPerTrigger is 'few'"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, r"minOffsetsPerTrigger \(5\) is more than"),
        (
            {"maxTriggerDelay": "soon"},
            "option maxTriggerDelay is 'soon': 'soon' is not valid; expected ms, or a duration such as 30s",
        ),
        ({"stopAtOffsets": "latest"}, "option stopAtOffsets is 'latest': must be an offset, 0 or more, for each partition"),
        ({"stopAtOffsets": '{"orders":{"0":-1}}'}, "option stopAtOffsets .*: must be an offset, 0 or more"),
        ({"stopAtOffsets": '{"bills":{"0":1}}'}, "option stopAtOffsets .*not subscribed: bills"),
        ({"startingOffsets": '{"orders":'}, "option startingOffsets is"),
        ({"maxOffsetPerTrigger": "1"}, "option maxOffsetPerTrigger is unknown to the format tiering"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(options: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        parse_stream({**NEEDED, **options})
