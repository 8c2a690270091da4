"""The splits of a pack, from the archive to staged Parquet files. Loaded by executors."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from local_log.errors import Corrupt, Invalid, NotFound
from local_log.formats.chunks import CHUNK_BYTES
from remote.clock import RandomIds
from remote.store.instrumented import Meter
from remote.store.open import open_store
from spark_jobs.backfill.forms import BINARY, Form, FormedRows
from spark_jobs.backfill.plan import Pack, bounds_of
from spark_jobs.common.attempts import Failed, attempt
from spark_jobs.common.commit_log import File
from spark_jobs.common.layout import By, file_name
from spark_jobs.common.once import put_once
from spark_jobs.common.parquet_files import FILE_BYTES, ParquetFiles
from spark_jobs.common.staging import Done, decode, encode, mark_of, stem_of
from spark_jobs.common.target import Target
from spark_jobs.read_context import read_context
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.rows import read_split

COLUMNS = ("key", "value", "partition", "offset", "timestamp", "timestampType", "headers")


@dataclass(frozen=True, slots=True)
class BackfillSpec:
    """What all tasks of a backfill have in common. A file has about `file_bytes`. `digest` is of its settings."""

    options: ReadOptions
    target: Target
    by: By
    compression: str
    digest: str
    key: Form = BINARY
    value: Form = BINARY
    file_bytes: int = FILE_BYTES

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read; the topic is in the path of the files."""
        return COLUMNS if self.options.include_headers else COLUMNS[:-1]

    @property
    def forms(self) -> dict[str, Form]:
        """The forms of those that may have one."""
        return {"key": self.key, "value": self.value}


def stage_parts(spec: BackfillSpec, pack: Pack) -> "list[Done | Failed]":
    """Stages a pack. Of one that has damage all splits but the damaged ones are staged: halves, until these are alone.

    Raises ConnectionError and TimeoutError, which Spark's next attempt may mend.
    """
    outcome = attempt(lambda of: stage(spec, of), pack)
    if not (isinstance(outcome, Failed) and isinstance(outcome.error, Corrupt | NotFound | Invalid) and len(pack) > 1):
        return [outcome]
    middle = len(pack) // 2
    return [*stage_parts(spec, pack[:middle]), *stage_parts(spec, pack[middle:])]


def stage(spec: BackfillSpec, pack: Pack) -> Done:
    """Stages a pack's files, unless another attempt has done so. Raises Corrupt, NotFound, Unavailable, Invalid."""
    part, bounds = bounds_of(pack)
    stem = stem_of(spec.digest, part, bounds)
    store, key = spec.target.store, mark_of(stem)
    try:
        return decode(store.get(key), key)
    except NotFound:
        pass
    written = _written(spec, pack, stem)
    done = decode(put_once(store, key, encode(written)), key)
    if done.attempt != written.attempt:
        for file in written.files:
            store.delete(file.staged)
    return done


def _written(spec: BackfillSpec, pack: Pack, stem: str) -> Done:
    part, (start, end) = bounds_of(pack)
    attempt_id, meter, rows = RandomIds().new_id(), Meter(), FormedRows(spec.columns, spec.forms)
    names: dict[str, str] = {}  # by path
    folder, _, prefix = stem.rpartition("/")
    with spec.target.dropped(folder) as drop:

        def place(date_folder: str, number: int) -> str:
            path = drop.path(f"{prefix}.{attempt_id}-{len(names)}")
            names[path] = file_name(date_folder, part.partition, start, end, number)
            return path

        files = ParquetFiles(rows.schema, part.topic, spec.by, spec.compression, place, spec.file_bytes)
        files.write_all(rows.of(_read(spec, pack, meter)))
    staged = [
        File(name, f"{stem}.{attempt_id}-{i}", files.rows[path], drop.bytes[f"{prefix}.{attempt_id}-{i}"])
        for i, (path, name) in enumerate(names.items())
    ]
    asked = meter.snapshot().values()
    requests, read_bytes = sum(c.calls for c in asked), sum(c.bytes for c in asked)
    unparsed = rows.unparsed
    return Done(attempt_id, part, start, end, tuple(staged), requests, read_bytes, unparsed["key"], unparsed["value"])


def _read(spec: BackfillSpec, pack: Pack, meter: Meter) -> Iterator[pa.RecordBatch]:
    store = open_store(spec.options.archive, meter=meter)
    for split in pack:
        yield from read_split(
            store,
            split,
            spec.columns,
            read_committed=spec.options.read_committed,
            first_bytes=CHUNK_BYTES,
            context=read_context(spec.options.archive, spec.options.keys),
        )
