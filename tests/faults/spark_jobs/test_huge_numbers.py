"""Numbers that nobody could compute with, in options, checkpoints and what runs keep: an error that says where."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from local_log.errors import Corrupt
from remote.store.open import open_store
from spark_jobs.common.offset_ranges import parse as parse_offset_ranges
from spark_jobs.common.run_offsets import key_of, run_offsets
from spark_jobs.errors import OptionError
from spark_jobs.jobs import search
from spark_jobs.source.options import parse
from spark_jobs.source.stream.offsets import decode
from spark_jobs.source.stream.options import parse_stream

NEEDED = {"archive": "s3://bucket/prefix", "subscribe": "orders"}
TOPIC_ID = "PnJ1xkWtQ5aqcyLsLZ9iLA"
HUGE = (2**63, 10**400)


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("startingOffsets", '{{"orders": {{"0": {}}}}}'),
        ("endingOffsets", '{{"orders": {{"0": {}}}}}'),
        ("startingOffsets", '{{"orders": {{"{}": 0}}}}'),
        ("startingOffsets", '{{"orders": {{"0": -{}000}}}}'),
        ("startingOffsetsByTimestamp", '{{"orders": {{"0": {}}}}}'),
        ("startingTimestamp", "{}"),
        ("asOfVersion", "{}"),
        ("asOfVersion", '{{"orders": {{"0": {}}}}}'),
        ("asOfTimestamp", "{}"),
        ("minPartitions", "{}"),
        ("maxRecordsPerPartition", "{}"),
        ("bytesPerSplit", "{}"),
    ],
)
def test_an_option_of_a_batch_with_such_a_number_is_refused_by_name(name: str, form: str, huge: int) -> None:
    with pytest.raises(OptionError, match=f"option {name} is "):
        parse({**NEEDED, name: form.format(huge)})


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"])
def test_an_option_of_a_stream_with_such_a_number_is_refused_by_name(name: str, huge: int) -> None:
    with pytest.raises(OptionError, match=f"option {name} is "):
        parse_stream({**NEEDED, name: str(huge)})


@pytest.mark.parametrize(
    "partitions",
    [{"0": 2**63}, {"0": -1}, {"0": 10**400}, {str(2**31): 5}, {"-1": 5}, {"zero": 5}, {"0": "5"}, {"0": None}, {"0": True}, 5],
)
def test_a_checkpoint_with_such_an_offset_is_refused(partitions: Any) -> None:
    with pytest.raises(OptionError, match="the checkpoint has no offsets") as raised:
        decode({"orders": partitions, f"orders@{TOPIC_ID}": {}})
    assert len(str(raised.value)) < 300
    assert decode({"orders": {"0": 2**63 - 1}, f"orders@{TOPIC_ID}": {}})


@pytest.mark.parametrize("vector", [{"0": [0, 2**63]}, {"0": [0, 10**400]}, {"0": [2**63, 2**63]}, {str(2**31): [0, 5]}])
def test_a_vector_with_such_an_offset_is_refused_and_so_is_what_a_run_has_kept(vector: Any, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="outside of") as raised:
        parse_offset_ranges(json.dumps({"orders": vector}))
    assert len(str(raised.value)) < 300
    store = open_store(str(tmp_path))
    kept = {"format": 1, "run": "daily", "asked": {}, "offsets": {"orders": vector}}
    store.put_if_absent(key_of("daily"), json.dumps(kept).encode())
    with pytest.raises(Corrupt) as damaged:
        run_offsets(store, "daily", {}, dict)
    assert damaged.value.file == key_of("daily")


@pytest.mark.parametrize("wrong", [{"format": 10**400}, {"format": -1}, {"asked": 5}, {"asked": [1]}])
def test_what_a_run_has_kept_of_another_form_is_damage(wrong: dict[str, Any], tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    kept = {"format": 1, "run": "daily", "asked": {}, "offsets": {}} | wrong
    store.put_if_absent(key_of("daily"), json.dumps(kept).encode())
    with pytest.raises(Corrupt):
        run_offsets(store, "daily", {}, dict)


@pytest.mark.parametrize("option", ["--timestamp", "--limit", "--from-timestamp"])
@pytest.mark.parametrize("huge", HUGE)
def test_a_job_s_option_with_such_a_number_is_refused_by_name(option: str, huge: int, tmp_path: Path) -> None:
    found = CliRunner().invoke(search.main, ["--archive", str(tmp_path), option, str(huge)])
    assert found.exit_code == 2
    assert option in found.stderr
