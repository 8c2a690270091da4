"""A job of `spark_jobs` as a task."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from tiering.airflow.command_operator import CommandOperator, option, refuse_failure
from tiering.airflow.sdk import Context

REPORT_CHARACTERS_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Submission:
    """How a job is started: Spark's master (None: without spark-submit), its settings, and what executors need shipped."""

    master: str | None
    conf: Mapping[str, str]
    py_files: Sequence[str] | str


def submitted(job: str, own: Sequence[str], how: Submission) -> list[str]:
    """The module that Python runs for a job of ours with its `own` words, and its arguments."""
    if how.master is None:
        return [f"spark_jobs.jobs.{job}", *own]
    conf = [f"{name}={value}" for name, value in how.conf.items()]
    words = ["spark_jobs.submit", "--master", how.master, *option("--conf", conf), *option("--py-files", how.py_files)]
    return [*words, job, "--", *own]


class SparkJobOperator(CommandOperator):
    """Runs one of our jobs that read records by spark-submit, and returns its report. For offload and expire: `spark_commands`.

    `master`: Spark's; None runs the job without spark-submit, in a session of this worker alone if it needs one. `arguments`: the
    job's own options; archive and keys are the connection's. `conf`: Spark's settings. `py_files`: what executors need and do not
    have, such as our wheel as a zip. The lists of a report stay in the log: it may have thousands of files.
    """

    template_fields = ("tiering_conn_id", "job", "arguments", "master", "conf", "py_files")

    def __init__(
        self, *, job: str, arguments: Sequence[Any] = (), master: str | None = None,
        conf: Mapping[str, str] = MappingProxyType({}), py_files: Sequence[str] | str = (), **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.job = job
        self.arguments = arguments
        self.master = master
        self.conf = dict(conf)
        self.py_files = py_files

    def words(self) -> list[str]:
        """The module that Python runs, and its arguments."""
        own = ["--archive", self.hook.archive_url(), *option("--keys", self.hook.keys()), *_flat(self.arguments)]
        return submitted(self.job, own, Submission(self.master, self.conf, self.py_files))

    def work(self, context: Context) -> Any:
        """Runs the job. Raises as `refuse_failure`."""
        report: list[str] = []
        size = 0

        def take(line: str) -> None:
            nonlocal size
            size += len(line)
            self.log.info("%s", line)
            if size <= REPORT_CHARACTERS_MAX:
                report.append(line)

        refuse_failure(*self.run_command(self.words(), take))
        try:
            answer = json.loads("\n".join(report))
        except ValueError:
            return None  # not every job answers in JSON, and none is a failure for it
        if not isinstance(answer, dict):
            return None
        return {name: value for name, value in answer.items() if not isinstance(value, list)}


def _flat(arguments: Sequence[Any]) -> list[str]:
    """Words; a pair (option, value or values) is as many words as it has values, none where the value is None."""
    words: list[str] = []
    for argument in arguments:
        words += [argument] if isinstance(argument, str) else option(str(argument[0]), argument[1])
    return words
