"""What users see of our errors in Spark: the sentence that says what is wrong and what helps, and nothing before it.

Spark's Python processes send their errors to the driver as text, by default with a traceback: forty lines of Spark's and ours
come before the one that helps. A process leaves the traceback out if SPARK_HIDE_TRACEBACK is set, which is what Spark's setting
`spark.sql.execution.pyspark.udf.hideTraceback.enabled` does for all errors of a session. Here it is set for the one that is sent,
in the process that sends it and ends: tracebacks of users' functions stay. Loaded by executors.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from local_log.errors import LogError
from spark_jobs.errors import OptionError


@contextmanager
def told_plainly() -> Iterator[None]:
    """Has Spark show an error of ours that the block raises without a traceback."""
    try:
        yield
    except (LogError, OptionError):
        if _is_a_process_of_sparks():
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def _is_a_process_of_sparks() -> bool:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and str(spec.name).startswith("pyspark.")
