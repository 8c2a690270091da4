"""`spark.read.format("tiering")`: the archive as a table, with the schema and the options of Spark's Kafka source.

spark.read.format("tiering").option("archive", "s3://bucket/prefix").option("subscribe", "orders").load()

df.write.format("tiering").option("archive", "s3://bucket/prefix").option("topic", "orders").mode("append").save()

An encrypted archive takes .option("keys", "aws-kms://alias/archive"), or a key file that every executor has, too.

Spark imports this module in a process for each step of planning, two of which only want the name and the schema: what reads
and writes is imported where it is asked for.
"""

import json
from collections.abc import Mapping

from pyspark.sql import types as t
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter

from spark_jobs.errors import OptionError
from spark_jobs.plain_errors import told_plainly
from spark_jobs.source.options import is_of_a_table, parse, with_headers

_OF_A_TABLE = "tiering.options"
_MAKES_A_TABLE = "provider"

_HEADER = t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())])
COLUMNS = (
    t.StructField("key", t.BinaryType()),
    t.StructField("value", t.BinaryType()),
    t.StructField("topic", t.StringType()),
    t.StructField("partition", t.IntegerType()),
    t.StructField("offset", t.LongType()),
    t.StructField("timestamp", t.TimestampType()),
    t.StructField("timestampType", t.IntegerType()),
    t.StructField("headers", t.ArrayType(_HEADER)),
)


class TieringDataSource(DataSource):
    """Spark's data source with the name `tiering`: batches, streams and writes."""

    @classmethod
    def name(cls) -> str:
        """The name that `format` takes; see DataSource."""
        return "tiering"

    @told_plainly()
    def schema(self) -> t.StructType:
        """Spark's Kafka columns; `headers` with includeHeaders. What else is given depends on what is read.

        Where a table is made, Spark keeps this schema, and of the options it hands nothing to who reads the table (4.3): so the
        first column's metadata hold them.
        """
        first, *others = COLUMNS if with_headers(self.options) else COLUMNS[:-1]
        if _MAKES_A_TABLE in self.options:
            kept = {name: text for name, text in self.options.items() if not is_of_a_table(name)}
            first = t.StructField(first.name, first.dataType, metadata={_OF_A_TABLE: json.dumps(kept)})
        return t.StructType([first, *others])

    @told_plainly()
    def reader(self, schema: t.StructType) -> DataSourceReader:
        """The batch reader for `schema`, which a user may have cut to the columns needed: only those are decoded."""
        from spark_jobs.source.batch_reader import BatchReader, PushdownReader

        options = parse({**_kept(schema), **self.options})
        return (PushdownReader if options.pushdown else BatchReader)(options, _known(schema))

    def streamReader(self, schema: t.StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """The same for a stream. Spark can limit a stream's micro-batches since 4.2: older ones cannot load it."""
        # Not told plainly: Spark (4.3) raises another error over one that is raised here, and only the traceback has ours.
        from spark_jobs.source.stream.options import parse_stream
        from spark_jobs.source.stream.reader import StreamReader

        return StreamReader(parse_stream({**_kept(schema), **self.options}), _known(schema))

    @told_plainly()
    def writer(self, schema: t.StructType, overwrite: bool) -> DataSourceWriter:
        """The writer of rows with this schema. Raises OptionError, NotOurs and what planning raises."""
        if overwrite:
            raise OptionError("mode overwrite: a log can only be appended to; delete the topic first, or use mode append")
        from spark_jobs.sink.options import parse as parse_write
        from spark_jobs.sink.writer import ArchiveWriter, planned

        return ArchiveWriter(planned(parse_write(self.options), schema))


def _known(schema: t.StructType) -> tuple[str, ...]:
    """The names of the columns; raises OptionError for one that there is not."""
    known = {f.name: f.dataType for f in COLUMNS}
    for field in schema:
        if known.get(field.name) != field.dataType:
            columns = ", ".join(f"{c.name} {c.dataType.simpleString()}" for c in COLUMNS)
            raise OptionError(f"column {field.name} {field.dataType.simpleString()} is none of: {columns}")
    return tuple(schema.fieldNames())


def _kept(schema: t.StructType) -> Mapping[str, str]:
    """The options with which the table was made whose schema this is, none where it is no table's."""
    texts = [field.metadata[_OF_A_TABLE] for field in schema if _OF_A_TABLE in field.metadata]
    return json.loads(texts[0]) if texts else {}
