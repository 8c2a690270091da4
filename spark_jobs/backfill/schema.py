"""The schema of JSON, in the words of Spark's `from_json`, as the Arrow type that executors read documents by."""

from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as t

from spark_jobs.backfill.forms import As, Form
from spark_jobs.errors import OptionError
from spark_jobs.session import session

FORM: Final = "the columns of a JSON object in Spark's DDL, such as 'id BIGINT, items ARRAY<STRUCT<name: STRING, price: DOUBLE>>'"
# No dates: Arrow takes any number for one. A timestamp reads "2026-11-20", too.
_TYPES: Final[dict[type[t.DataType], pa.DataType]] = {
    t.BooleanType: pa.bool_(),
    t.ByteType: pa.int8(),
    t.ShortType: pa.int16(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.StringType: pa.string(),
    t.TimestampType: pa.timestamp("us", tz="UTC"),
    t.TimestampNTZType: pa.timestamp("us"),
}
_KNOWN: Final = "boolean, tinyint, smallint, int, bigint, float, double, decimal, string, timestamp, timestamp_ntz, array, struct"


def form_of(option: str, kind: As, ddl: str | None, master: str | None = None) -> Form:
    """The form that options ask for; `option` is the name of the schema's. Raises OptionError.

    A schema is read by Spark itself: a session is made where there is none.
    """
    if kind is not As.json:
        if ddl is not None:
            raise OptionError(f"{option} is for JSON: add {option.replace('schema', 'as')} json, or leave it out")
        return Form(kind)
    if ddl is None:
        raise OptionError(f"JSON needs a schema: give {option} with {FORM}; or write text")
    session("tiering backfill", master=master)
    try:
        parsed = t.DataType.fromDDL(ddl)
    except PySparkException as e:
        said = str(e).strip().splitlines()[0]
        raise OptionError(f"{option} {ddl!r} is no schema: expected {FORM} ({said})") from e
    if not isinstance(parsed, t.StructType) or not parsed.fields:
        raise OptionError(f"{option} {ddl!r} is no schema of an object: expected {FORM}")
    return Form(kind, _arrow(option, parsed), parsed.simpleString())


def _arrow(option: str, kind: t.DataType) -> Any:
    if isinstance(kind, t.StructType):
        return pa.struct([pa.field(f.name, _arrow(option, f.dataType)) for f in kind.fields])
    if isinstance(kind, t.ArrayType):
        return pa.list_(pa.field("element", _arrow(option, kind.elementType)))
    if isinstance(kind, t.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if type(kind) not in _TYPES:
        raise OptionError(f"{option}: {kind.simpleString()} cannot be read from JSON here; there are {_KNOWN}")
    return _TYPES[type(kind)]
