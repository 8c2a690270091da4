"""`tiering expire`: expires what a topic's retention no longer keeps, and deletes the objects of what has expired before."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tiering.command.completion import folders
from tiering.command.config_option import deletion_policies
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.expire_options import ExpireOptions, expire_options
from tiering.command.options import Number, ask, named, options_as, partition_option
from tiering.command.output import Row, emit, say
from tiering.machine import CLOCK, IDS, local_disk, open_archive_store

if TYPE_CHECKING:
    from remote.store.api import ObjectStore
    from tiering.log_tools import directory as log_dir_tools
    from tiering.retention.policy import Given
    from tiering.retention.run import Planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ExpireOptions):
    """The options of `tiering expire`."""

    partition: int | None
    log_start_offset: int | None
    own_log_dir: str | None


@click.command("expire")
@expire_options(
    partition_option("Only this partition, for --log-start-offset."),
    click.option(
        "--log-start-offset",
        type=Number(),
        metavar="N",
        help="Delete the records below this offset (DeleteRecords) of one --partition.",
    ),
    click.option(
        "--own-log-dir",
        callback=named,
        shell_complete=folders,
        metavar="DIR",
        help="A log directory that no broker uses: local.retention.ms and local.retention.bytes apply to it.",
    ),
)
@reports_errors
@options_as(Options)
def command(options: Options) -> Exit | None:
    """Expire archived segments that are older than retention.ms or more than retention.bytes, both tiers together.

    They first leave the manifest. A later run deletes their objects, after file.delete.delay.ms (default: one day) and when no
    reader's pin covers them. There is no default retention: set retention.ms, retention.bytes (-1 for no limit) or
    cleanup.policy=compact for every topic, as -c retention.ms=604800000 or -c 'orders*:retention.ms=-1'. Topics without such a
    setting are left alone.

    A compacted topic expires only by a setting for exactly this topic, such as -c state:retention.ms=604800000, not by one for
    all topics or for a pattern. The cluster's metadata in --log-dir or --metadata-log-dir says which topics are compacted.
    Without it, a topic that was compacted before it was archived is rejected.

    \b
    Examples:
      tiering expire --archive s3://bucket/kafka --topic orders -c retention.ms=31536000000 --dry-run
      tiering expire --config tiering.toml --yes
    """
    from tiering.log_dirs import log_dir
    from tiering.retention.run import LocalTier, Retention

    if options.log_start_offset is not None and (options.partition is None or len(options.topics) != 1):
        raise click.UsageError("--log-start-offset needs one partition: choose it with --topic and --partition")
    options.refuse_contradictions()
    limits = options.retention(is_start_given=options.log_start_offset is not None or options.follow_log_start_offset)
    _refuse_local_limits(options)
    store = open_archive_store(options.archive_url, options.keys_address)
    names, counted = options.names(store), options.counted_log_dir
    local = LocalTier.of(log_dir(counted), lambda name: name in names) if counted is not None else None
    retention = Retention(
        store, CLOCK, IDS, limits, local, options.archive_alone, options.partition, options.log_start_offset,
        options.follow_log_start_offset, options.cluster(),
    )  # fmt: skip
    local_work = _Local(options.own_log_dir, store, limits, options.keys_address)
    if options.dry_run or not options.is_agreed:
        code = _emit(retention.planned(names), local_work.planned(), options.output)
        if options.dry_run:
            return code
        ask(f"Delete this from {store.url}{f' and {options.own_log_dir}' if options.own_log_dir else ''} for good?")
    return _emit(retention.done(names), local_work.done(), options.output)


def _refuse_local_limits(options: Options) -> None:
    from tiering.retention.policy import LOCAL, read_given

    if options.own_log_dir is None and any(one.name in LOCAL for one in read_given(options.settings)):
        raise click.UsageError(
            f"{' and '.join(LOCAL)} would do nothing: only a broker deletes from its log directory; for one that no broker uses "
            "give --own-log-dir DIR"
        )


class _Local:
    """What goes of a log directory of ours, once the archive's own segments have expired."""

    def __init__(self, folder: str | None, store: "ObjectStore", given: "tuple[Given, ...]", keys_address: str | None) -> None:
        from remote.read.context import decoder_with
        from remote.transforms.decoded_bytes import DecodedBytes
        from tiering.local_tier.deletion_policies import load_policies

        self.folder, self.store, self.given = folder, store, given
        self.policies = load_policies(deletion_policies()) if folder is not None else ()
        self.decoded = decoder_with(keys_address) if folder is not None else DecodedBytes

    def planned(self) -> Iterator[Row | Exception]:
        """A row for each log, and what is wrong with one in its place."""
        yield from self._rows(self._plans())

    def done(self) -> Iterator[Row | Exception]:
        """The same when it is done."""
        from tiering.log_tools import directory as log_dir_tools

        plans = [*self._plans()]
        if self.folder is not None:
            found = [plan for plan in plans if isinstance(plan, log_dir_tools.LocalPlan)]
            yield from log_dir_tools.expire_local(self.folder, found, self.policies)
        yield from self._rows(plans)

    def _plans(self) -> "Iterator[log_dir_tools.LocalPlan | Exception]":
        from tiering.local_tier.settings_at_rest import local_settings
        from tiering.log_tools import directory as log_dir_tools

        if self.folder is not None:
            config_of = local_settings(local_disk(), self.folder.rstrip("/") or "/", self.given, self.policies)
            for plan in log_dir_tools.plan_local(self.folder, self.store, config_of, self.policies, self.decoded):
                yield plan if isinstance(plan, log_dir_tools.LocalPlan) else plan[1]

    def _rows(self, plans: "Iterable[log_dir_tools.LocalPlan | Exception]") -> Iterator[Row | Exception]:
        from remote.keys import PartitionPath
        from tiering.retention.run import row

        for plan in plans:
            if isinstance(plan, Exception):
                yield plan
                continue
            log, gone = plan.log, plan.gone
            path = PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)
            of = gone or log.segments
            start = gone[0].base_offset if gone else log.log_start_offset
            end = (gone[-1].next_base_offset if gone else None) or log.log_end_offset
            action, reason = ("delete locally", "the archive has it") if gone else ("keep locally", "")
            yield row(path, action, start, end, len(of), sum(plan.sizes[s.base_offset] for s in of), reason)


def _emit(work: "Iterable[Planned]", local: Iterable[Row | Exception], output: str) -> Exit | None:
    """Prints the result of each partition; an error does not stop the others."""
    from tiering.retention.plan import RetentionPlan
    from tiering.retention.run import row, rows_of

    errors: list[Exception] = []
    plans = 0

    def rows() -> Iterator[Row]:
        nonlocal plans
        for path, due in work:
            if isinstance(due, RetentionPlan):
                plans += 1
                yield from rows_of(path, due)
            else:
                say(f"tiering: {due}")
                errors.append(due)
                yield row(path, "refused", None, None, 0, 0, str(due))
        for line in local:
            if isinstance(line, Exception):
                say(f"tiering: {line}")
                errors.append(line)
            else:
                plans += 1
                yield line

    emit(rows(), output)
    return exit_code_of_all(errors, partly=plans > 0)
