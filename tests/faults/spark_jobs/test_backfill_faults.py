"""A backfill that is killed, or beside which another one runs, at each of its steps: each offset once, nothing half visible.

The steps are all calls of the target's store and file system, of driver and tasks; the tasks run here, one after the other.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from remote.clock import RandomIds, SystemClock
from remote.store.open import open_store
from spark_jobs.backfill import run as backfill_run
from spark_jobs.backfill.task import BackfillSpec, stage
from spark_jobs.common import commit_log
from spark_jobs.common.attempts import attempt
from spark_jobs.common.layout import By
from spark_jobs.common.outcome import collect_outcomes
from spark_jobs.common.target import STAGING, Target
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import plan_splits
from spark_jobs.source.ranges import resolve

Row = dict[str, Any]
TOPICS = "g-txn,g-tiny"


class Killed(BaseException):
    """The process is gone; nobody in it catches this."""


@dataclass
class Fate:
    """Does something before one call of a door, and after a death forbids all others."""

    at: int
    act: Callable[[], None]
    calls: int = 0
    is_dead: bool = False

    def step(self) -> None:
        if self.is_dead:
            raise Killed
        self.calls += 1
        if self.calls == self.at:
            self.act()

    def die(self) -> None:
        self.is_dead = True
        raise Killed


class Door:
    """A store or a file system whose every call is a step."""

    def __init__(self, inner: Any, fate: Fate) -> None:
        self._inner = inner
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._fate.step()
            return found(*args, **kwargs)

        return call


class FatedTarget(Target):
    """A target that meets its fate."""

    fate: Fate

    @property
    def store(self) -> Any:
        return Door(super().store, self.fate)

    def _open(self) -> tuple[Any, str]:
        files, root = super()._open()
        self.fate.step()
        return Door(files, self.fate), root


@pytest.fixture(params=["folder", "objects"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty target: files that are renamed, or objects that are copied."""
    return str(tmp_path / "out") if request.param == "folder" else f"memory:/{tmp_path}"


@pytest.fixture(autouse=True)
def tasks_run_here(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The tasks of a job, one after the other, in this process."""

    def run_tasks(job: str, items: Sequence[Any], act: Any, size_of: Any, **_: Any) -> Any:
        return collect_outcomes([attempt(act, item) for item in items])

    monkeypatch.setattr(backfill_run, "run_tasks", run_tasks)


def order(archive: str, target: Target, **options: str) -> BackfillSpec:
    """Of four packs: no two of the segments fit into one."""
    known = {"archive": archive, "subscribe": TOPICS, "includeHeaders": "true", "maxRecordsPerPartition": "2600"}
    asked = parse({**known, **options})
    return backfill_run.spec_of(asked, target, By.date, "snappy")


def run(archive: str, target: Target, **options: str) -> Row:
    made = order(archive, target, **options)
    return backfill_run.run(made, resolve(open_store(archive), made.options), SystemClock(), RandomIds())


def fated(url: str, at: int, act: Callable[[Fate], None]) -> FatedTarget:
    target = FatedTarget(url)
    fate = Fate(at, lambda: act(fate))
    type(target).fate = fate
    return target


def seen(url: str) -> Counter[tuple[str, int]]:
    """The topics and offsets that a reader of the folder finds, and how often."""
    target = Target(url)
    files, root = target._open()
    found: Counter[tuple[str, int]] = Counter()
    for name in target.names(""):
        assert name.endswith(".parquet"), f"{name} can be seen"
        with files.open(f"{root}/{name}", "rb") as file:
            topic = name.partition("/")[0].removeprefix("topic=")
            found.update((topic, offset) for offset in pq.read_table(file, columns=["offset"]).column("offset").to_pylist())
    return found


def staged(url: str) -> list[str]:
    return [meta.key for meta in Target(url).store.list(STAGING)]


@pytest.fixture
def wanted(expected: Callable[..., list[Row]]) -> Counter[tuple[str, int]]:
    return Counter((topic, row["offset"]) for topic in TOPICS.split(",") for row in expected(topic))


def every_step(archive: str, url: str) -> Iterator[tuple[int, str]]:
    """The steps of a run, each with a target of its own; objects take a few more than files.

    Objects go after their step: all that are there are looked through at every call.
    """
    target = fated(f"{url}/undisturbed", 0, lambda fate: None)
    run(archive, target)
    assert target.fate.calls > 30
    for at in range(1, target.fate.calls + 1):
        yield at, f"{url}/{at}"
        MemoryFileSystem.store.clear()


def test_a_run_that_is_killed_at_any_step_shows_nothing_half_and_the_next_one_completes_it(
    archive: str, url: str, wanted: Counter[tuple[str, int]]
) -> None:
    """What the killed run had staged is not read again."""
    committed_steps = 0
    found_staged: set[int] = set()
    for at, here in every_step(archive, url):
        with pytest.raises(Killed):
            run(archive, fated(here, at, lambda fate: fate.die()))
        commit, visible = commit_log.newest(Target(here).store), seen(here)
        assert set(visible.values()) <= {1}
        assert visible <= wanted
        assert commit is not None or not visible
        committed_steps += commit is not None
        found_staged.add(run(archive, Target(here))["splits_found_staged"])
        assert seen(here) == wanted
        assert staged(here) == []
    assert committed_steps > 10
    assert found_staged == {0, 1, 2, 3, 4}


def test_a_run_during_which_another_does_it_all_at_any_step_leaves_each_offset_once(
    archive: str, url: str, wanted: Counter[tuple[str, int]]
) -> None:
    for at, here in every_step(archive, url):
        reports: list[Row] = []
        ours = run(archive, fated(here, at, lambda fate, here=here, reports=reports: reports.append(run(archive, Target(here)))))
        assert seen(here) == wanted
        assert ours["rows"] + reports[0]["rows"] == wanted.total()
        assert run(archive, Target(here))["splits"] == 0
        assert staged(here) == []


def test_a_run_during_which_one_of_other_splits_does_it_all_leaves_each_offset_once(
    archive: str, url: str, wanted: Counter[tuple[str, int]]
) -> None:
    for at, here in every_step(archive, url):
        if at % 3 != 1:
            continue
        run(
            archive,
            fated(here, at, lambda fate, here=here: run(archive, Target(here), minPartitions="9", subscribe="g-txn") and None),
            maxRecordsPerPartition="3000",
        )
        assert seen(here) == wanted
        assert run(archive, Target(here))["splits"] == 0


def test_of_speculative_twins_the_first_to_finish_stays_and_the_other_leaves_nothing(archive: str, url: str) -> None:
    split = plan_splits(open_store(archive), order(archive, Target(url)).options)[1]
    for at in (1, 2, 3):
        here = f"{url}/{at}"
        twins: list[Any] = []
        target = fated(here, at, lambda fate, here=here, twins=twins: twins.append(stage(order(archive, Target(here)), (split,))))
        ours = stage(order(archive, target), (split,))
        assert ours == twins[0]
        assert {f.staged for f in ours.files} == {key for key in staged(here) if not key.endswith(".json")}
        assert seen(here) == Counter()
