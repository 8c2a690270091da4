"""An operator for each command that Airflow runs: offload (plan, copy, report), expire, sweep, scrub, restore.

Arguments are named after the command's options. All are templates; a DAG with `render_template_as_native_obj=True` hands lists
and truths on as what they are.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final
from warnings import warn

from local_log.errors import Invalid
from tiering.airflow.assets import archived_asset
from tiering.airflow.command_operator import CommandOperator, flag, listed_words, option, refuse_failure
from tiering.airflow.hooks import WHERE_LOG_DIR
from tiering.airflow.sdk import AirflowException, AssetAlias, Context
from tiering.command.exit_codes import Exit
from tiering.command.output import Row

TASKS_MAX: Final = 256
"""Airflow maps a task at most 1,024 times (max_map_length), and each of them takes it seconds."""

_QUIET: Final = ("archived", "keep")
"""Rows that say of a segment that there is nothing to do."""

_DUE: Final = ("copy", "replace", "refused")
"""Rows of a plan whose partition is to be offloaded: the task reports what is refused."""

_REFUSING: Final = (Exit.failure, Exit.corruption)
"""What a plan of all partitions ends with if it has refused some of them; without such rows it has ended early."""


class RowsOperator(CommandOperator):
    """A command that answers rows: they go to the task's log, and the task returns how many there were of which kind.

    `{"rows": {"copied": 3}, "bytes": 12345}`
    """

    counted: ClassVar[str] = "action"
    """The column that says of which kind a row is."""

    def words(self) -> list[str]:
        """The command line behind `tiering`; raises Invalid where the connection lacks something."""
        raise NotImplementedError

    def work(self, context: Context) -> Any:
        """Runs the command. Raises as `refuse_failure`."""
        kinds: Counter[str] = Counter()
        size = 0

        def take(row: Row) -> None:
            nonlocal size
            kind = str(row[self.counted])
            kinds[kind] += 1
            size += row.get("bytes") or 0
            if kind not in _QUIET:
                self.log.info("%s", " ".join(f"{name}={value}" for name, value in row.items() if value not in (None, "")))

        refuse_failure(*self.run_for_rows(self.words(), take))
        return {"rows": dict(kinds), "bytes": size}


class OffloadOperator(RowsOperator):
    """`tiering offload`: copies what is due of a log directory of this worker's host.

    `log_dir`: unless given, that of the connection, else of the configuration. `own_log_dir`: instead one that no broker uses.
    `partitions`: only these, such as orders-0.
    `must_exist`: make no new archive, since what is missing may be a folder that is not mounted.
    """

    template_fields: Sequence[str] = (
        "tiering_conn_id", "log_dir", "own_log_dir", "topics", "partitions", "must_exist", "bytes_per_second", "threads",
        "is_dry_run",
    )  # fmt: skip

    def __init__(  # the parameters are the interface of DAGs
        self, *, log_dir: str | None = None, topics: Sequence[str] | str = (), partitions: Sequence[str] | str = (),
        must_exist: bool | str = True, bytes_per_second: int | str | None = None, threads: int | str | None = None,
        is_dry_run: bool | str = False, own_log_dir: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.log_dir = log_dir
        self.own_log_dir = own_log_dir
        self.topics = topics
        self.partitions = partitions
        self.must_exist = must_exist
        self.bytes_per_second = bytes_per_second
        self.threads = threads
        self.is_dry_run = is_dry_run

    def words(self) -> list[str]:
        """The command and its options. Raises Invalid if no log directory is given, and what the hook raises."""
        if self.hook.log_dir(self.own_log_dir or self.log_dir) is None:
            raise Invalid(f"no log directory is given: {WHERE_LOG_DIR}, or as log.dirs in the configuration of the worker")
        words = ["offload", *option("--log-dir", self.log_dir), *option("--own-log-dir", self.own_log_dir)]
        words += option("--topic", self.topics)
        words += [*option("--topic-partition", self.partitions), *option("--bytes-per-second", self.bytes_per_second)]
        words += [*option("--threads", self.threads), *flag("--must-exist", self.must_exist)]
        return words + flag("--dry-run", self.is_dry_run)


class OffloadPlanOperator(OffloadOperator):
    """Returns the partitions that have something to copy, as lists for mapped tasks: one for a partition, at most `tasks_max`.

    A partition that cannot be planned is included: its task reports the error. A dry run shows the plan and returns no list;
    other runs record new logs and losses in the manifests. A loss fails the first try, so that users are notified. The next try
    continues also with new losses, since only copies prevent further ones.
    """

    def __init__(self, *, tasks_max: int = TASKS_MAX, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tasks_max = tasks_max

    def work(self, context: Context) -> list[list[str]]:
        """Plans. Raises as `refuse_failure` where the command ended before it had planned all partitions."""
        due: set[str] = set()
        actions: Counter[str] = Counter()

        def take(row: Row) -> None:
            actions[row["action"]] += 1
            if row["action"] in _DUE:
                due.add(f"{row['topic']}-{row['partition']}")
                self.log.info(
                    "%s-%s: %s %s %s", row["topic"], row["partition"], row["action"], row["segment"] or "", row["reason"]
                )

        is_dry_run = bool(flag("", self.is_dry_run))
        code, said = self.run_for_rows([*self.words(), *([] if is_dry_run else ["--copy-nothing"])], take)
        if not _is_whole(code, actions):
            refuse_failure(code, said)
        if actions["lost"] and not is_dry_run:
            self._tell_lost(context, said)
        self.log.info("%d partitions have something to copy; segments: %s", len(due), dict(actions))
        if is_dry_run:
            return []
        groups = min(len(due), self.tasks_max)
        return [sorted(due)[i::groups] for i in range(groups)]

    def _tell_lost(self, context: Context, said: str) -> None:
        task = context["ti"]
        if task.try_number == 1 and getattr(task, "max_tries", 0) > 0:
            raise AirflowException(f"offsets are lost: {said}")
        self.log.error("offsets are lost: %s", said)


def _is_whole(code: int, actions: Mapping[str, int]) -> bool:
    """Whether a command that ended so, after rows of these actions, has planned all partitions."""
    if code in _REFUSING:
        return "refused" in actions
    return code == Exit.done or (code == Exit.partly and bool(actions))


class ArchivedThroughOperator(CommandOperator):
    """Tells Airflow how far in time topics are archived: an event of the asset of each topic, see `tiering.airflow.assets`.

    `partitions`: lists of partitions, as OffloadPlanOperator returns them; each of their topics gets an event. Reads only
    manifests.
    """

    template_fields = ("tiering_conn_id", "partitions")
    alias: ClassVar[AssetAlias] = AssetAlias("tiering_archived")

    def __init__(self, *, partitions: Any, **kwargs: Any) -> None:
        super().__init__(outlets=[self.alias], **kwargs)
        self.partitions = partitions

    def work(self, context: Context) -> dict[str, Any]:
        """Returns the content of the events by topic."""
        from tiering.read.archived_through import archived_through

        store, url = self.hook.store(), self.hook.archive_url()
        topics = sorted({partition.rpartition("-")[0] for group in self.partitions for partition in listed_words(group)})
        extras = {}
        for topic in topics:
            found = archived_through(store, topic)
            if any(through.end_offset for through in found):
                through_ms = min(through.through_ms for through in found)
                ends = {str(through.partition): through.end_offset for through in found}
                latest = {str(through.partition): through.through_ms for through in found}
                extra: dict[str, Any] = {
                    "topic": topic,
                    "offsets": ends,
                    "through_ms": through_ms,
                    "through_ms_by_partition": latest,
                }
                context["outlet_events"][self.alias].add(archived_asset(url, topic), extra=extra)
                extras[topic] = extra
                self.log.info("%s is archived through %d ms since 1970, up to %s", topic, through_ms, ends)
        return extras


class ExpireOperator(RowsOperator):
    """`tiering expire --yes`: removes segments that are past retention from the manifests, and deletes those removed before.

    `settings`: as `-c` takes them, beside those of the configuration. `archive_alone`: there is no local log to count.
    `metadata_log_dir`: where the cluster's metadata says which topics are compacted, if that is not `log_dir`. `own_log_dir`: a
    log directory that no broker uses, to which local.retention.ms and local.retention.bytes apply.
    """

    template_fields: Sequence[str] = (
        "tiering_conn_id",
        "log_dir",
        "metadata_log_dir",
        "own_log_dir",
        "topics",
        "settings",
        "archive_alone",
        "follow_log_start_offset",
        "is_dry_run",
    )

    def __init__(  # the parameters are the interface of DAGs
        self, *, log_dir: str | None = None, topics: Sequence[str] | str = (), settings: Sequence[str] | str = (),
        archive_alone: bool | str = False, follow_log_start_offset: bool | str = False, is_dry_run: bool | str = False,
        metadata_log_dir: str | None = None, own_log_dir: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.log_dir = log_dir
        self.metadata_log_dir = metadata_log_dir
        self.own_log_dir = own_log_dir
        self.topics = topics
        self.settings = settings
        self.archive_alone = archive_alone
        self.follow_log_start_offset = follow_log_start_offset
        self.is_dry_run = is_dry_run

    def words(self) -> list[str]:
        """See RowsOperator."""
        if not flag("", self.archive_alone):
            self.hook.log_dir(self.log_dir)
        words = ["expire", *option("--log-dir", self.log_dir), *option("--topic", self.topics), *option("-c", self.settings)]
        words += [*option("--metadata-log-dir", self.metadata_log_dir), *option("--own-log-dir", self.own_log_dir)]
        words += [*flag("--archive-alone", self.archive_alone), *flag("--follow-log-start-offset", self.follow_log_start_offset)]
        return words + (flag("--dry-run", self.is_dry_run) or ["--yes"])


def __getattr__(name: str) -> Any:
    if name == "RetainOperator":  # before `tiering retain` became `tiering expire`
        warn("tiering.airflow.operators.RetainOperator is deprecated; use ExpireOperator", DeprecationWarning, stacklevel=2)
        return ExpireOperator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class SweepOperator(RowsOperator):
    """`tiering sweep --yes`: deletes objects that no manifest names."""

    counted = "what"
    template_fields = ("tiering_conn_id", "topics", "grace_ms", "is_dry_run")

    def __init__(
        self,
        *,
        topics: Sequence[str] | str = (),
        grace_ms: int | str | None = None,
        is_dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.topics = topics
        self.grace_ms = grace_ms
        self.is_dry_run = is_dry_run

    def words(self) -> list[str]:
        """See RowsOperator."""
        words = ["sweep", *option("--topic", self.topics), *option("--grace-ms", self.grace_ms)]
        return words + (flag("--dry-run", self.is_dry_run) or ["--yes"])


class ScrubOperator(RowsOperator):
    """`tiering scrub`: proves that an archive is what its manifests say; fails for good where it is not."""

    counted = "kind"
    template_fields = ("tiering_conn_id", "topics", "deep", "sample", "seed", "requests_max")

    def __init__(
        self, *, topics: Sequence[str] | str = (), deep: bool | str = False, sample: float | str | None = None,
        seed: int | str | None = None, requests_max: int | str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.topics = topics
        self.deep = deep
        self.sample = sample
        self.seed = seed
        self.requests_max = requests_max

    def words(self) -> list[str]:
        """See RowsOperator."""
        words = ["scrub", *option("--topic", self.topics), *flag("--deep", self.deep), *option("--sample", self.sample)]
        return [*words, *option("--seed", self.seed), *option("--requests-max", self.requests_max)]


class RestoreOperator(RowsOperator):
    """`tiering restore`: writes archived partitions as a log directory `to` of this worker's host, which a broker starts on.

    `topic_ids`: the ids that topics have in the cluster that gets them, by name.
    """

    template_fields = ("tiering_conn_id", "to", "topics", "until_offset", "until_timestamp", "topic_ids", "is_dry_run")

    def __init__(
        self, *, to: str, topics: Sequence[str] | str = (), until_offset: int | str | None = None,
        until_timestamp: int | str | None = None, topic_ids: Mapping[str, str] | None = None, is_dry_run: bool | str = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.to = to
        self.topics = topics
        self.until_offset = until_offset
        self.until_timestamp = until_timestamp
        self.topic_ids = topic_ids
        self.is_dry_run = is_dry_run

    def words(self) -> list[str]:
        """See RowsOperator."""
        words = [
            "restore",
            *option("--to", self.to),
            *option("--topic", self.topics),
            *option("--until-offset", self.until_offset),
        ]
        words += option("--until-timestamp", self.until_timestamp)
        words += option("--topic-id", [f"{topic}={topic_id}" for topic, topic_id in (self.topic_ids or {}).items()])
        return words + flag("--dry-run", self.is_dry_run)
