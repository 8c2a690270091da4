"""What a job says of an error that a task of Spark's own raised."""

from pyspark.errors import PySparkException

from local_log.errors import Corrupt, NoKey, NotFound
from spark_jobs.errors import OptionError, error_of
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
    return error_of(PySparkException(TRACEBACK.format(last)))


def test_the_last_error_of_ours_is_raised_with_its_words_and_its_exit_code() -> None:
    error = raised("local_log.errors.NoKey: a.log: key 'k1' is needed: no keys are given")
    assert isinstance(error, NoKey)
    assert str(error) == "a.log: key 'k1' is needed: no keys are given"
    assert exit_code_of(error) is Exit.failure
    assert exit_code_of(raised("local_log.errors.Unavailable: s3 does not answer")) is Exit.retry
    assert isinstance(raised("spark_jobs.errors.OptionError: null topic"), OptionError)


def test_an_error_of_a_users_function_says_where_it_was_raised() -> None:
    spark = PySparkException("Traceback:\nValueError: local_log.errors.NoKey: no\n")
    assert error_of(spark) is spark
    assert isinstance(raised("users.errors.Mine: no"), Corrupt)


def test_an_error_that_is_shown_without_a_traceback_is_known_by_its_place() -> None:
    shown = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to plan read: spark_jobs.source.stream.plan.DataLoss: orders-0: gone SQLSTATE: 38000"
    )
    error = error_of(PySparkException(shown))
    assert (type(error).__name__, str(error)) == ("DataLoss", "orders-0: gone")
    assert isinstance(error, NotFound)
    other = PySparkException("failed: spark_jobs.errors.error_of: no")
    assert error_of(other) is other


def test_what_names_a_module_that_is_not_there_stays_what_it_is() -> None:
    spark = PySparkException("remote.nowhere.Gone: no")
    assert error_of(spark) is spark
