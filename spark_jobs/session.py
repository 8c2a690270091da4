"""The Spark session of our jobs and tests, the same on a laptop and under spark-submit.

A process that has no session yet gets a local, quiet one, reachable from this machine alone. Where spark-submit or a
notebook brought its own, that one is used with its master and its Java, and only two things are
set on it: the time zone, for unambiguous times, and that filters reach data sources written in Python.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

try:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession
except ModuleNotFoundError as e:
    raise ModuleNotFoundError(f"{e}; pip install 'kafka-tiering[spark]'", name=e.name) from e

from spark_jobs.java import java_home

FASTER_ROWS = "-XX:+UseParallelGC -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Java options for executors: a collector for throughput, and Arrow without a check of bounds at every value."""

NEEDED = {"spark.sql.session.timeZone": "UTC", "spark.sql.python.filterPushdown.enabled": "true"}

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()

# Default Java options, not the extra ones: those are the user's, and Spark puts these in front of them. What they and the
# sockets speed up is how Arrow's columns, which our Python workers hand over, become Spark's rows; together by a quarter.
LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING} {FASTER_ROWS}",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def session(app_name: str, *, master: str | None = None, conf: Mapping[str, str] = MappingProxyType({})) -> SparkSession:
    """The running session, or a new one: on `master`, or on all cores of this machine.

    `conf` is set last, so it wins; on a session that was already there Spark takes from it what can still be changed.
    Raises RuntimeError if a new session is needed and there is no Java for it.
    """
    ours = SparkSession.getActiveSession() is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    builder = SparkSession.builder.appName(app_name)
    if ours:
        os.environ["JAVA_HOME"] = java_home()
        # Spark would run its Python workers with the python3 of PATH, which need not have our packages.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.config(map=dict(LOCAL)).master(master or "local[*]")
    elif master is not None:
        builder = builder.master(master)
    with _listening_as_before():
        if ours and SparkContext._active_spark_context is None:
            of_all = {**LOCAL, "spark.app.name": app_name, "spark.master": master or "local[*]", **NEEDED, **conf}
            _begin(SparkConf().setAll(list(of_all.items())))
        return builder.config(map={**NEEDED, **conf}).getOrCreate()


def _begin(conf: SparkConf) -> None:
    """Starts Spark where Ctrl-C at a terminal does not come to Java, which would end before us and have all calls fail."""
    launch: Any = launch_gateway  # it has no types
    SparkContext(conf=conf, gateway=SparkContext._gateway or launch(conf, {"start_new_session": True}))


@contextmanager
def _listening_as_before() -> Iterator[None]:
    """A new Spark context listens to Ctrl-C, and then calls Java in the midst of another call, which fails."""
    listener = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, listener)
