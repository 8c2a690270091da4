"""One split, from the archive to staged Parquet files. Loaded by executors."""

from dataclasses import dataclass

import pyarrow as pa

from local_log.errors import NotFound
from local_log.formats.chunks import CHUNK_BYTES
from remote.clock import RandomIds
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.backfill.plan import bounds_of
from spark_jobs.common.commit_log import File
from spark_jobs.common.layout import By, file_name
from spark_jobs.common.once import put_once
from spark_jobs.common.parquet_files import ParquetFiles
from spark_jobs.common.staging import Done, decode, encode, mark_of, stem_of
from spark_jobs.common.target import Target
from spark_jobs.read_context import read_context
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split
from spark_jobs.source.rows import FIELDS, read_split

COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")


@dataclass(frozen=True, slots=True)
class BackfillSpec:
    """What all tasks of a backfill have in common. `digest` is of its settings."""

    options: ReadOptions
    target: Target
    by: By
    compression: str
    digest: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the files; the topic is in their path."""
        return COLUMNS if self.options.include_headers else COLUMNS[:-1]


def stage(spec: BackfillSpec, split: Split) -> Done:
    """Stages a split's files, unless another attempt has done so. Raises Corrupt, NotFound, Unavailable, Invalid."""
    part, bounds = bounds_of(split)
    stem = stem_of(spec.digest, part, bounds)
    store, key = spec.target.store, mark_of(stem)
    try:
        return decode(store.get(key), key)
    except NotFound:
        pass
    written = _written(spec, split, stem)
    done = decode(put_once(store, key, encode(written)), key)
    if done.attempt != written.attempt:
        for file in written.files:
            store.delete(file.staged)
    return done


def _written(spec: BackfillSpec, split: Split, stem: str) -> Done:
    part, (start, end) = bounds_of(split)
    attempt, meter = RandomIds().new_id(), Meter()
    schema = pa.schema([(name, FIELDS[name]) for name in spec.columns])
    names: dict[str, str] = {}  # by path
    folder, _, prefix = stem.rpartition("/")
    with spec.target.dropped(folder) as drop:

        def place(date_folder: str, number: int) -> str:
            path = drop.path(f"{prefix}.{attempt}-{len(names)}")
            names[path] = file_name(date_folder, split.partition, start, end, number)
            return path

        files = ParquetFiles(schema, split.topic, spec.by, spec.compression, place)
        files.write_all(
            read_split(
                open_store(spec.options.archive, meter=meter),
                split,
                spec.columns,
                read_committed=spec.options.read_committed,
                first_bytes=CHUNK_BYTES,
                context=read_context(spec.options.archive, spec.options.keys),
            )
        )
    staged = [
        File(name, f"{stem}.{attempt}-{i}", files.rows[path], drop.bytes[f"{prefix}.{attempt}-{i}"])
        for i, (path, name) in enumerate(names.items())
    ]
    asked = meter.snapshot().values()
    return Done(attempt, part, start, end, tuple(staged), sum(c.calls for c in asked), sum(c.bytes for c in asked))
