"""spark-submit of one of our jobs, as this environment has both: it finds Spark, a Java for it and the job's file.

python -m spark_jobs.submit --master yarn --conf spark.executor.memory=4g backfill -- --archive s3://… --to s3://… --topic orders
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import click
from pyspark.find_spark_home import _find_spark_home

from spark_jobs.java import java_home
from spark_jobs.session import LOCAL

JOBS = ("backfill", "expire", "offload", "reprocess", "scrub", "search", "stats")


def command_line(master: str, conf: Iterable[str], files: Iterable[str], job: str, arguments: Iterable[str]) -> list[str]:
    """What spark-submit is called with; `conf` are NAME=VALUE, and `files` what `--py-files` ships to executors."""
    words = [str(Path(_find_spark_home(), "bin", "spark-submit")), "--master", master]
    # A local session logs little and listens on loopback only; the settings of a cluster are its users' choice.
    own = (f"{name}={value}" for name, value in LOCAL.items() if is_local(master))
    for pair in (*own, *conf):
        words += ["--conf", pair]
    if shipped := ",".join(files):
        words += ["--py-files", shipped]
    return [*words, str(Path(__file__).with_name("jobs") / f"{job}.py"), *arguments]


def is_local(master: str) -> bool:
    """Whether a session is of this machine alone."""
    return master.startswith("local")


@click.command("submit")
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Spark's master.")
@click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be given several times.")
@click.option(
    "--py-files",
    "files",
    multiple=True,
    metavar="FILE",
    help="A file to ship to the executors, such as dist/kafka_tiering.zip; may be given several times.",
)
@click.argument("job", type=click.Choice(JOBS))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(master: str, conf: tuple[str, ...], files: tuple[str, ...], job: str, arguments: tuple[str, ...]) -> None:
    """Run a JOB of ours by spark-submit; its own ARGUMENTS follow after --."""
    python = {"PYSPARK_DRIVER_PYTHON": sys.executable} | ({"PYSPARK_PYTHON": sys.executable} if is_local(master) else {})
    words = command_line(master, conf, files, job, arguments)
    os.execve(words[0], words, python | os.environ | {"JAVA_HOME": java_home()})  # noqa: S606  # no shell is what is wanted


if __name__ == "__main__":
    main()
