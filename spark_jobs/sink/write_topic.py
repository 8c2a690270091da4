"""Writes a DataFrame to the archive as `df.write` does, and lets Spark's tasks move what has to be moved.

    write_topic(df, "s3://bucket/prefix", {"topic": "orders", "partitions": "12", "kafka.compression.type": "zstd"})

Where rows of a partition come from several tasks, only the first task's stand where they should. The others are read and uploaded
once more at their offsets, here by tasks on all executors, with `df.write` by the one process that commits.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from pyspark.sql import DataFrame

from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.write_record import Decision
from spark_jobs.sink.handover import handover
from spark_jobs.sink.options import TASKS_TO, parse
from spark_jobs.sink.placement import Move
from spark_jobs.sink.writer import planned, run_commit, run_move

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def write_topic(df: DataFrame, archive: str, options: Mapping[str, str] = NO_OPTIONS) -> Decision | None:
    """Adds the rows of `df` to topics of an archive, all of them or none; gives what was added, None for no rows of no topic.

    The options are those of the format tiering. With a `writeId` it adds nothing if that write was committed before. Raises
    OptionError, NotOurs, Invalid, Conflict, Fenced, Unknown, Unavailable, Corrupt, and Spark's errors for what a task raises.
    """
    write = planned(parse({**options, "archive": archive}), df.schema)
    if write.done is not None:
        return write.done

    def move_on_executors(moves: Sequence[Move]) -> Iterable[SegmentEntry]:
        if not moves:
            return ()
        tasks = df.sparkSession.sparkContext.parallelize(moves, len(moves))
        entries: list[SegmentEntry] = tasks.map(lambda move: run_move(write.options, move)).collect()
        return entries

    with handover() as place:
        given = {**options, "archive": archive, TASKS_TO: place.path}
        df.write.format("tiering").options(**given).mode("append").save()
        return run_commit(write, place.taken(), move_on_executors)
