"""What a job says of an error that a task of Spark's own raised."""

from pyspark.errors import PySparkException

from local_log.errors import Corrupt, NoKey
from spark_jobs.common.task_error import raised_by_task
from spark_jobs.errors import OptionError
from tiering.command.exit_codes import Exit, exit_code_of

TRACEBACK = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "rows.py", line 59, in read_split
    raise Corrupt("x") from e
local_log.errors.Corrupt: a.log at 7: a bad batch

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "rows.py", line 63, in read_split
{}
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner
"""


def raised(last: str) -> Exception:
    return raised_by_task(PySparkException(TRACEBACK.format(last)))


def test_the_last_error_of_ours_is_raised_with_its_words_and_its_exit_code() -> None:
    error = raised("local_log.errors.NoKey: a.log: key 'k1' is needed: no keys are given")
    assert isinstance(error, NoKey)
    assert str(error) == "a.log: key 'k1' is needed: no keys are given"
    assert exit_code_of(error) is Exit.failure
    assert exit_code_of(raised("local_log.errors.Unavailable: s3 does not answer")) is Exit.retry
    assert isinstance(raised("spark_jobs.errors.OptionError: null topic"), OptionError)


def test_an_error_of_a_users_function_says_where_it_was_raised() -> None:
    spark = PySparkException("Traceback:\nValueError: local_log.errors.NoKey: no\n")
    assert raised_by_task(spark) is spark
    assert isinstance(raised("users.errors.Mine: no"), Corrupt)
