"""A driver that is killed amid many jobs: python -m doomed_driver ARCHIVE GROWING FOLDER.

Jobs whose tasks die run to their end. The others stop where their fates say, each leaves its mark there; then a stream
begins, which goes on until the process is killed.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread, current_thread
from typing import Any

from doomed_source import Doom, DoomedSource, active, write
from doomed_target import DoomedTarget
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from remote.clock import RandomIds, SystemClock
from remote.store.open import open_store
from spark_jobs.backfill import run as backfill_run
from spark_jobs.common import commit_log
from spark_jobs.common.layout import By
from spark_jobs.common.target import Target
from spark_jobs.jobs import reprocess
from spark_jobs.session import session
from spark_jobs.source.options import parse
from spark_jobs.source.ranges import resolve

TOPIC, GROWING_TOPIC = "g-codec-zstd", "g-codec-none"
WRITES_TO_KILL = ("before the decision", "after the decision")
BACKFILLS_TO_KILL = ("before the commit", "before publication")


def backfill_options(archive: str) -> dict[str, str]:
    """Of a backfill of more splits than one."""
    return {"archive": archive, "subscribe": "g-txn", "includeHeaders": "true", "minPartitions": "3"}


def reprocess_arguments(archive: str, to: Path) -> list[str]:
    """Of a job of which one task does not end while WAITS_FOR says so."""
    topics = ["--topic", TOPIC, "--topic", "g-txn"]
    return ["--archive", archive, *topics, "--to-parquet", str(to), "--function", "doomed_driver:waits_in_one_task"]


def waits_in_one_task(records: DataFrame) -> DataFrame:
    """A user's function of which one task never ends, unless the file named by WAITS_FOR is there."""
    waits_for = os.environ["WAITS_FOR"]

    @udf("boolean", useArrow=False)
    def wait(topic: str, offset: int) -> bool:
        while (topic, offset) == (TOPIC, 0) and not os.path.exists(waits_for):
            time.sleep(0.05)
        return True

    return records.where(wait("topic", "offset"))


def _backfill(archive: str, target: Target) -> None:
    options = parse(backfill_options(archive))
    order = backfill_run.spec_of(options, target, By.date, "snappy")
    report = backfill_run.run(order, resolve(open_store(archive), options), SystemClock(), RandomIds())
    Path(target.url, "report.json").write_text(json.dumps(report))


def _stopping(function: Callable[..., Any], fate: str, folder: Path, when: Callable[..., bool] = lambda *_: True) -> Any:
    """The function, which in the thread of this fate stops for good instead."""

    def stop_or_go_on(*args: Any) -> Any:
        if current_thread().name == fate and when(*args):
            Doom(fate, str(folder)).stop()
        return function(*args)

    return stop_or_go_on


def _jobs(spark: SparkSession, archive: str, folder: Path) -> dict[str, Callable[[], object]]:
    before, after = BACKFILLS_TO_KILL
    commit_log.put = _stopping(commit_log.put, before, folder / before)
    is_committed = lambda target, store, head: head.version > 0  # noqa: E731
    backfill_run.publish_all = _stopping(backfill_run.publish_all, after, folder / after, is_committed)
    jobs: dict[str, Callable[[], object]] = {}
    for fate in ("tasks die", *WRITES_TO_KILL, *BACKFILLS_TO_KILL):
        (folder / fate).mkdir()
    for fate in ("tasks die", *WRITES_TO_KILL):
        jobs[f"write: {fate}"] = partial(write, spark, str(folder / fate / "archive"), "one", Doom(fate, str(folder / fate)))
    for fate in BACKFILLS_TO_KILL:
        jobs[fate] = partial(_backfill, archive, Target(str(folder / fate / "out")))
    jobs["tasks die"] = partial(_backfill, archive, DoomedTarget(str(folder / "tasks die" / "out")))
    arguments = reprocess_arguments(archive, folder / "reprocess")
    jobs["reprocess"] = lambda: reprocess.main(arguments, standalone_mode=False)
    return jobs


def _run(spark: SparkSession, job: Callable[[], object]) -> None:
    """A job that fails ends the driver."""
    try:
        active(spark)
        job()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _stream(spark: SparkSession, url: str, folder: Path) -> None:
    known = {"archive": url, "subscribe": GROWING_TOPIC, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "40"}
    writer = spark.readStream.format("tiering").options(**known).load().writeStream.format("parquet")
    writer.option("path", f"{folder}/out").option("checkpointLocation", f"{folder}/c").start().awaitTermination()


def _have_all_stopped(folder: Path) -> bool:
    """Or ended, if they are to end."""
    stopped = [folder / fate / fate for fate in (*WRITES_TO_KILL, *BACKFILLS_TO_KILL)]
    return all(mark.exists() for mark in stopped) and any((folder / "reprocess").rglob("part-*.parquet"))


if __name__ == "__main__":
    archive, growing, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    spark = session("doomed", master="local[3,3]", conf={"spark.sql.execution.arrow.maxRecordsPerBatch": "1000"})
    spark.dataSource.register(DoomedSource)
    threads = {name: Thread(target=_run, args=(spark, job), name=name) for name, job in _jobs(spark, archive, folder).items()}
    for thread in threads.values():
        thread.start()
    for name in ("tasks die", "write: tasks die"):
        threads[name].join()
    while not _have_all_stopped(folder):
        time.sleep(0.1)
    _stream(spark, growing, folder / "stream")
