"""Two topics of one name in an archive, made one after the other: which one is read, that it is said, and `--topic-id`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import CountingIds, SleptClock
from click.testing import Result
from made_archive import made

import tiering
from local_log.errors import NotFound
from remote.manifest.model import never_archived
from remote.manifest.store import claim
from remote.store.api import ObjectStore
from remote.store.folder.store import FolderStore
from spark_jobs.common.arguments import ReadArguments, resolve_ranges
from spark_jobs.errors import OptionError
from spark_jobs.source.options import parse
from spark_jobs.source.ranges import resolve
from spark_jobs.source.stream.plan import newest

Rows = Callable[..., list[dict[str, Any]]]
Run = Callable[..., Result]

OLD, NEW = "O" * 22, "N" * 22
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the old topic six records in two segments, of the new one three; then a sweep has claimed the old one."""
    folder = str(tmp_path_factory.mktemp("archive"))
    store: ObjectStore = FolderStore(folder)
    made(store, [[(1, 2, 3)], [(4, 5, 6)]], topic_id=OLD)
    made(store, [[(7, 8, 9)]], topic_id=NEW, first_ms=HOUR_MS)
    clock = SleptClock()
    clock.sleep(2 * 3600)
    claim(store, never_archived("made", OLD, 0, 0), clock, CountingIds("c"), "sweep")
    return folder


READING: dict[str, tuple[str, ...]] = {
    "fetch": ("fetch", "--topic", "made", "--partition", "0", "--offset", "0"),
    "offsets": ("offsets", "--topic", "made"),
    "describe": ("describe", "made"),
    "manifest show": ("manifest", "show", "--topic", "made"),
    "manifest history": ("manifest", "history", "--topic", "made"),
}
COUNTS = {"fetch": (3, 6), "offsets": (1, 1), "describe": (1, 1), "manifest show": (1, 1), "manifest history": (2, 4)}


@pytest.mark.parametrize("name", READING)
def test_a_command_reads_the_newer_topic_and_says_so_and_the_other_one_by_its_id(
    run: Run, rows: Rows, url: str, name: str
) -> None:
    words = (*READING[name], "--archive", url)
    told = run(*words)
    assert told.exit_code == 0
    assert told.stderr.count(f"this is the one with id {NEW}") == 1
    assert OLD in told.stderr
    chosen = run(*words, "--topic-id", OLD)
    assert (chosen.exit_code, chosen.stderr) == (0, "")
    assert (len(rows(*words)), len(rows(*words, "--topic-id", OLD))) == COUNTS[name]
    assert rows(*words) != rows(*words, "--topic-id", OLD)


@pytest.mark.parametrize("name", READING)
def test_an_id_that_no_topic_of_the_name_has_is_not_found_beside_those_that_there_are(run: Run, url: str, name: str) -> None:
    result = run(*READING[name], "--archive", url, "--topic-id", "X" * 22)
    assert result.exit_code == 4
    if name != "fetch":
        assert f"{NEW}, {OLD}" in result.stderr
    assert run(*READING[name], "--archive", url, "--topic-id", "short").exit_code == 2


def test_versions_are_compared_and_entries_exported_of_the_topic_that_was_asked_for(run: Run, url: str, tmp_path: Path) -> None:
    of = ("--archive", url, "--topic", "made", "--topic-id", OLD)
    assert run("manifest", "diff", *of, 2, 3).exit_code == 0
    assert run("manifest", "diff", "--archive", url, "--topic", "made", 2, 3).exit_code == 4, "the new one has two versions"
    assert "2 segments" in run("manifest", "export", *of, "--to", tmp_path / "entries.parquet").stderr


def test_a_topic_is_restored_by_the_id_that_it_had_under_one_that_it_gets(run: Run, rows: Rows, url: str, tmp_path: Path) -> None:
    words = ("restore", "--archive", url, "--to", tmp_path / "logs", "--dry-run")
    assert [row["end_offset"] for row in rows(*words)] == [3]
    assert OLD in run(*words).stderr
    assert [row["end_offset"] for row in rows(*words, "--from-topic-id", f"made={OLD}")] == [3, 6]
    assert run(*words, "--from-topic-id", f"made={'X' * 22}").exit_code == 4
    given = ("--from-topic-id", f"made={OLD}", "--topic-id", f"made={'G' * 22}")
    assert run("restore", "--archive", url, "--to", tmp_path / "logs", *given).exit_code == 0
    assert "G" * 22 in (tmp_path / "logs" / "made-0" / "partition.metadata").read_text()


def test_a_scrub_is_of_all_ids_or_of_the_one_that_is_asked_for(rows: Rows, run: Run, url: str, tmp_path: Path) -> None:
    def requests(*words: str) -> int:
        said = run("scrub", "--archive", url, "--deep", *words).stderr
        return int(said.split(";")[-1].split()[0])

    assert requests("--topic-id", f"made={NEW}") < requests("--topic-id", f"made={OLD}") < requests("--topic", "made")
    assert run("scrub", "--archive", url, "--topic-id", f"made={'X' * 22}").exit_code == 4
    assert run("scrub", "--archive", url, "--topic", "other*", "--topic-id", f"made={NEW}").exit_code == 4


def test_python_is_warned_and_reads_the_topic_that_it_asks_for(url: str) -> None:
    with tiering.open_reader(archive=url) as reader:
        assert reader.topic_ids("made") == (NEW, OLD)
        assert reader.topic_ids("other") == ()
        with pytest.warns(UserWarning, match=OLD):
            assert reader.read("made").read_all().num_rows == 3
        assert reader.read("made", topic_id=OLD).read_all().num_rows == 6
        assert reader.read("made", 0, topic_id=OLD).read_all().num_rows == 6
        assert reader.list_offsets("made", -1, topic_id=OLD) == {0: 6}
        assert reader.coverage("made", topic_id=OLD)["end_offset"].to_pylist() == [6]
        with pytest.raises(NotFound):
            reader.read("made", topic_id="X" * 22)


def test_spark_reads_the_topic_that_the_option_names_in_batches_and_streams(url: str) -> None:
    store = FolderStore(url)
    given = {"archive": url, "subscribe": "made"}
    with pytest.warns(UserWarning, match="option topicId"):
        assert [(r.manifest.topic_id, r.end) for r in resolve(store, parse(given))] == [(NEW, 3)]
    for text in (OLD, f"made={OLD}"):
        options = parse({**given, "topicId": text})
        assert [(r.manifest.topic_id, r.end) for r in resolve(store, options)] == [(OLD, 6)]
        assert [path.topic_id for path in newest(store, options.strategy, options.topic_ids)] == [OLD]
    assert not newest(store, parse(given).strategy, {"made": "X" * 22})
    for text in ("short", f"other={OLD}", "made="):
        with pytest.raises(OptionError, match="topicId"):
            parse({**given, "topicId": text})


@pytest.mark.parametrize("vector", [None, {"made": {0: (0, 6)}}])
def test_a_job_reads_the_topic_that_was_asked_for(url: str, vector: Any) -> None:
    topics = () if vector else ("made",)
    arguments = ReadArguments(
        archive_url=url,
        keys_address=None,
        topics=topics,
        dry_run=False,
        prices_file=None,
        storage_class=None,
        master=None,
        pairs=(f"topicId=made={OLD}",),
        from_ms=None,
        to_ms=None,
        offset_ranges=vector,
        resolve_only=False,
    )
    _, ranges = resolve_ranges(arguments)
    assert [(r.manifest.topic_id, r.start, r.end) for r in ranges] == [(OLD, 0, 6)]


@pytest.mark.parametrize("job", ["stats", "search", "backfill", "reprocess"])
def test_every_job_takes_the_id(url: str, job: str, tmp_path: Path) -> None:
    from importlib import import_module

    from click.testing import CliRunner

    needs = {"backfill": ["--to", str(tmp_path)], "reprocess": ["--sql", "select 1", "--to-parquet", str(tmp_path)]}
    words = ["--archive", url, "--topic", "made", "--topic-id", f"made={OLD}", "--resolve-only", *needs.get(job, [])]
    result = CliRunner().invoke(import_module(f"spark_jobs.jobs.{job}").main, words, catch_exceptions=False)
    assert json.loads(result.stdout) == {"made": {"0": [0, 6]}}
