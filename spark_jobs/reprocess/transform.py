"""What a user makes of records: a query, or a function that takes a DataFrame and gives one."""

from collections.abc import Callable
from importlib import import_module

from pyspark.sql import DataFrame

from spark_jobs.source.options import OptionError

VIEW = "records"
"""What a query selects from."""

Transform = Callable[[DataFrame], DataFrame]


def unchanged(records: DataFrame) -> DataFrame:
    """Returns the records unchanged, to copy them to the target."""
    return records


def by_sql(query: str) -> Transform:
    """A query over `records`; Spark's own errors say what is wrong with it."""

    def run(records: DataFrame) -> DataFrame:
        records.createOrReplaceTempView(VIEW)
        return records.sparkSession.sql(query)

    return run


def by_function(name: str) -> Transform:
    """The function `module:name`. Raises OptionError where there is none of that name; what its module raises comes as it is."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise OptionError(f"the function {name!r} has to be named as module:name")
    try:
        found = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError as e:
        if e.name is None or not f"{module}.".startswith(f"{e.name}."):
            raise
        raise OptionError(
            f"there is no module {e.name!r}; put it where Python looks, or give it to spark-submit by --py-files"
        ) from e
    if not callable(found):
        raise OptionError(f"the module {module!r} has no function {attribute!r}")

    def run(records: DataFrame) -> DataFrame:
        made = found(records)
        if not isinstance(made, DataFrame):
            raise OptionError(f"the function {name} gave a {type(made).__name__}; it must return a DataFrame")
        return made

    return run
