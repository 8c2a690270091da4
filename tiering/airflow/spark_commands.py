"""Operators of the commands that Spark can do, too: each takes the arguments of the command's operator, and Spark's."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tiering.airflow.operators import ExpireOperator, OffloadOperator, RowsOperator
from tiering.airflow.spark_operator import Submission, submitted
from tiering.command.output import Row

_OF_SPARK = ("master", "conf", "py_files")


class _BySpark(RowsOperator):
    """Has the job of the command's name do what the command would; see `SparkJobOperator` for Spark's arguments.

    Archive, log directory, keys and configuration are the connection's, as for the command.
    """

    def __init__(
        self, *, master: str | None = None, conf: Mapping[str, str] = MappingProxyType({}), py_files: Sequence[str] | str = (),
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.master = master
        self.conf = dict(conf)
        self.py_files = py_files

    def run_for_rows(self, words: Iterable[str], take: Callable[[Row], None]) -> tuple[int, str]:
        """See CommandOperator. What Spark itself prints among the rows goes to the log."""
        self.hook.archive_url()
        job, *own = words

        def take_line(line: str) -> None:
            if line.startswith("{"):
                take(json.loads(line))
            else:
                self.log.info("%s", line)

        how = Submission(self.master, self.conf, self.py_files)
        return self.run_command(submitted(job, [*own, "--output", "jsonl"], how), take_line)


class SparkOffloadOperator(_BySpark, OffloadOperator):
    """`tiering offload` by Spark: the worker and the executors see the log directory at the same path."""

    template_fields = (*OffloadOperator.template_fields, *_OF_SPARK)


class SparkExpireOperator(_BySpark, ExpireOperator):
    """`tiering expire --yes` by Spark, for archives with very many partitions."""

    template_fields = (*ExpireOperator.template_fields, *_OF_SPARK)
