"""`tiering diverged`: an unclean election, from the refused offload to two histories that are read, scrubbed and restored."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from key_files import ENCODE, write_keys
from offloaded import contents
from small_brokers import B, Brokers, topic_id, values

from remote.store.open import open_store

Rows = Callable[..., list[dict[str, Any]]]
Run = Callable[..., Result]


@pytest.fixture(params=["", *ENCODE])
def encode(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """What an offload is told for each encoding, and what all other commands are."""
    options: tuple[object, ...] = ENCODE.get(request.param, ())
    keys = ("--keys", write_keys(tmp_path / "keys.json", "k", k=bytes(range(32)))) if "--encrypt" in options else ()
    return (*options, *keys), keys


def unclean(base: Path, run: Run, archived: tuple[object, ...]) -> Path:
    """The leader's log directory: it lacks offsets 5 to 7, which the former leader has archived, and has others there."""
    brokers = Brokers.of(base, brokers=2)
    brokers.create_topic("topicB", {0: [0, 1]}, batches_per_segment=2)
    brokers.produce(B, 0, 1, 2, 3, 4)
    brokers.produce(B, 5, 6, 7, 8, replicated=False)
    brokers.log(B, 0).update_high_watermark(9)
    brokers.tick(0)
    assert run("offload", "--log-dir", brokers.brokers[0].folders[0], *archived).exit_code == 0
    brokers.lead(B, 1)
    brokers.drop_replica(B, 0)
    brokers.produce(B, *range(100, 106))
    return brokers.brokers[1].folders[0]


def fetched(rows: Rows, start: int, *more: object) -> list[str]:
    found = rows("fetch", "--topic", "topicB", "--partition", 0, "--offset", start, "--max-records", 100, *more)
    return [row["value"] for row in found]


def test_both_histories_are_kept_and_archiving_goes_on(
    run: Run, rows: Rows, tmp_path: Path, encode: tuple[tuple[object, ...], tuple[object, ...]]
) -> None:
    url, (offloaded, keys) = str(tmp_path / "archive"), encode
    to = ("--archive", url, *offloaded)
    folder = unclean(tmp_path / "brokers", run, to)
    refused = run("offload", "--log-dir", folder, *to)
    assert refused.exit_code == 5
    assert "see tiering diverged show" in refused.stderr
    before = contents(open_store(url))

    at = ("--log-dir", folder, "--archive", url, *keys)
    shown = run("diverged", "show", *at, "--output", "json")
    assert shown.exit_code == 3
    (row,) = json.loads(shown.stdout)
    assert (row["fork_offset"], row["archive_end_offset"], row["log_end_offset"], row["segments"]) == (5, 8, 11, 2)
    assert (row["offsets"], row["newer"], row["missing_below_fork"], row["not_archived_below_start"]) == (3, "log", 0, 0)
    assert row["bytes"] > 0
    one = ("diverged", "resolve", *at, "--topic", "topicB", "--partition", 0)
    assert rows(*one, "--dry-run") == [row]
    assert run(*one).exit_code == 2, "nobody can be asked"
    assert contents(open_store(url)) == before

    (done,) = rows(*one, "--yes")
    assert done == {**row, "archive_end_offset": 4}
    assert run(*one, "--yes").stdout == ""
    assert run("offload", "--log-dir", folder, *to).exit_code == 0
    assert rows("diverged", "show", *at) == []

    of = ("--archive", url, *keys)
    assert fetched(rows, 0, *of) == values(*range(5), *range(100, 105))
    assert fetched(rows, 4, *of, "--topic-id", row["kept_topic_id"]) == values(4, 5, 6, 7)
    for ids in ((), ("--topic-id", f"topicB={row['kept_topic_id']}")):
        assert run("scrub", *of, "--deep", "--topic", "topicB", *ids).exit_code == 0
    target = tmp_path / "restored"
    restored = ("--topic", "topicB", "--from-topic-id", f"topicB={row['kept_topic_id']}", "--to", target)
    assert run("restore", *of, *restored).exit_code == 0
    assert fetched(rows, 4, "--log-dir", target) == values(4, 5, 6, 7)


def test_what_was_given_up_goes_after_the_delay_and_the_kept_history_stays(run: Run, rows: Rows, tmp_path: Path) -> None:
    url = str(tmp_path / "archive")
    folder = unclean(tmp_path / "brokers", run, ("--archive", url))
    (row,) = json.loads(run("diverged", "show", "--log-dir", folder, "--archive", url, "--output", "json").stdout)
    rows("diverged", "resolve", "--log-dir", folder, "--archive", url, "--topic", "topicB", "--partition", 0, "--yes")
    assert run("offload", "--log-dir", folder, "--archive", url).exit_code == 0
    segments = f"topicB/{topic_id('topicB')}/0/segments/"
    before = {key for key in contents(open_store(url)) if key.startswith(segments)}
    retained = run("expire", "--archive", url, "-c", "retention.ms=-1", "-c", "file.delete.delay.ms=0", "--yes")
    assert retained.exit_code == 0, retained.stderr
    after = contents(open_store(url)).keys()
    assert len({key for key in before if key not in after}) == 2 * 2
    assert run("scrub", "--archive", url, "--deep").exit_code == 0
    assert fetched(rows, 0, "--archive", url) == values(*range(5), *range(100, 105))
    assert fetched(rows, 4, "--archive", url, "--topic-id", row["kept_topic_id"]) == values(4, 5, 6, 7)


def test_what_cannot_be_archived_below_an_expired_archive_s_start_is_told_by_each_command(run: Run, tmp_path: Path) -> None:
    url = str(tmp_path / "archive")
    folder = unclean(tmp_path / "brokers", run, ("--archive", url))
    assert run("expire", "--archive", url, "-c", "retention.ms=1", "--yes").exit_code == 0
    at = ("--log-dir", folder, "--archive", url)
    one = ("diverged", "resolve", *at, "--topic", "topicB", "--partition", 0)
    for words in (("diverged", "show", *at), (*one, "--dry-run"), (*one, "--yes")):
        told = run(*words, "--output", "json")
        assert told.exit_code == 3, words
        (row,) = json.loads(told.stdout)
        assert (row["fork_offset"], row["segments"], row["not_archived_below_start"]) == (8, 0, 3)
        assert "offsets [5, 8) of the log are below the archive's log start offset" in told.stderr
    assert run("offload", *at).exit_code == 0


def test_without_keys_nothing_is_given_up_that_is_encrypted(run: Run, rows: Rows, tmp_path: Path) -> None:
    url, keys = str(tmp_path / "archive"), ("--keys", write_keys(tmp_path / "keys.json", "k", k=bytes(range(32))))
    folder = unclean(tmp_path / "brokers", run, ("--archive", url, "--encrypt", *keys))
    one = ("diverged", "resolve", "--log-dir", folder, "--archive", url, "--topic", "topicB", "--partition", 0, "--yes")
    refused = run(*one)
    assert refused.exit_code == 1
    assert "give keys that have it" in refused.stderr
    assert fetched(rows, 0, "--archive", url, *keys) == values(*range(8))
