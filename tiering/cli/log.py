"""`tiering log`: a look at one partition's folder."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from local_log.formats.primitives import INT32_MAX
from tiering.command.completion import folders
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import Number, P, output_option
from tiering.command.output import emit, progress_bar, say

if TYPE_CHECKING:
    from local_log.engine.config import LogConfig


@click.group("log")
def command() -> None:
    """Dump, recover, append to and truncate a partition's folder in a log directory."""


@command.command("dump")
@click.argument("folder", metavar="DIR", shell_complete=folders)
@click.option("--batches", is_flag=True, help="Print a line for each batch header.")
@click.option("--records", is_flag=True, help="Print a line for each record, including control records.")
@click.option("--snapshots", is_flag=True, help="Print a line for each producer in each snapshot.")
@output_option("jsonl")
@reports_errors
def dump(folder: str, batches: bool, records: bool, snapshots: bool, output: str) -> None:
    """Print the content of a partition's folder DIR, like kafka-dump-log. Keys, values and headers are base64.

    In a folder of Kafka 0.7 (segments named .kafka), messages are printed as batches, and offsets are byte positions.

    \b
    Examples:
      tiering log dump /var/lib/kafka/orders-0 --batches --output table
    """
    from tiering.log_tools import dump as of

    verbs = ((batches, of.batches), (records, of.records), (snapshots, of.snapshots))
    wanted = [verb for is_wanted, verb in verbs if is_wanted]
    if len(wanted) != 1:
        raise click.UsageError("choose one of --batches, --records and --snapshots")
    emit(wanted[0](folder.rstrip("/")), output)


def config_option(command: Callable[P, None]) -> Callable[P, None]:
    """The option `-c name=value`, as often as there are settings."""
    text = "A topic setting with Kafka's name, such as segment.bytes=1048576; may be given several times."
    return click.option("-c", "--set", "settings", multiple=True, metavar="NAME=VALUE", help=text)(command)


def _config(settings: tuple[str, ...]) -> "LogConfig":
    """The settings of `config_option`. Raises UsageError for one that is none."""
    from local_log.errors import Invalid
    from tiering.log_tools.partition import config_of

    try:
        return config_of(settings)
    except Invalid as e:
        raise click.UsageError(str(e)) from e


@command.command("recover")
@click.argument("folder", metavar="DIR", shell_complete=folders)
@click.option(
    "--log-start-offset",
    type=Number(),
    metavar="N",
    help="The partition's offset in log-start-offset-checkpoint. Default: what the file beside DIR says, else 0.",
)
@click.option(
    "--recovery-point",
    type=Number(),
    metavar="N",
    help="The partition's offset in recovery-point-offset-checkpoint. Default: 0, which checks everything.",
)
@click.option("--clean-shutdown", is_flag=True, help="The broker closed the log cleanly: check nothing.")
@config_option
@output_option("jsonl")
@reports_errors
def recover(
    folder: str,
    log_start_offset: int | None,
    recovery_point: int | None,
    clean_shutdown: bool,
    settings: tuple[str, ...],
    output: str,
) -> Exit | None:
    """Recover the folder of a partition that no broker uses, as a broker does at start-up.

    The log is truncated at the first damaged batch; indexes and producer snapshots are rebuilt. Keep a copy of DIR.

    DIR may be a whole log directory, one of log.dirs: it is locked, its checkpoint files replace the options, each partition is
    one line of output, and finally the clean-shutdown file is written.

    \b
    Examples:
      tiering log recover /copy/of/orders-0 --recovery-point 4711
    """
    from tiering.log_tools import directory as log_dir_tools
    from tiering.log_tools.opened_partition import Opening, opened
    from tiering.log_tools.partition import describe

    config = _config(settings)
    if not log_dir_tools.is_log_dir(folder):
        with opened(folder, Opening(config, log_start_offset, recovery_point or 0, recovers=not clean_shutdown)) as log:
            state = describe(log)
        emit([state], output)
        return None
    if clean_shutdown or log_start_offset is not None or recovery_point is not None:
        raise click.UsageError(
            f"{folder} is a whole log directory; leave out these options, since its checkpoint files have their values"
        )
    recovered = log_dir_tools.recover_all(folder, config, progress_bar("Opening logs"))
    emit(recovered.rows, output)
    for message in recovered.notes:
        say(f"tiering: {message}")
    return exit_code_of_all(recovered.errors, partly=bool(recovered.rows))


@command.command("append")
@click.argument("source", metavar="SRC_DIR", shell_complete=folders)
@click.argument("target", metavar="DST_DIR", shell_complete=folders)
@click.option("--follower", is_flag=True, help="Keep offsets and leader epochs.")
@click.option("--leader-epoch", type=Number(0, INT32_MAX), metavar="N", help="Assign new offsets, with this leader epoch.")
@config_option
@output_option("jsonl")
@reports_errors
def append(source: str, target: str, follower: bool, leader_epoch: int | None, settings: tuple[str, ...], output: str) -> None:
    """Append every batch in the segments of SRC_DIR to the log in DST_DIR, which is created if it does not exist.

    SRC_DIR may be a folder of Kafka 0.7: its messages become records of the current format, with new offsets.

    A log that is created gets a topic id, and with --follower the log start offset of SRC_DIR. The checkpoint files of the log
    directory follow what was done; the high watermark is the log's end.
    """
    from tiering.log_tools.copied_log import append_log

    if follower == (leader_epoch is not None):
        raise click.UsageError("choose either --follower or --leader-epoch N")
    emit([append_log(source, target, _config(settings), leader_epoch)], output)


@command.command("truncate")
@click.argument("folder", metavar="DIR", shell_complete=folders)
@click.argument("offset", type=Number())
@config_option
@output_option("jsonl")
@reports_errors
def truncate(folder: str, offset: int, settings: tuple[str, ...], output: str) -> None:
    """Truncate the log in DIR to OFFSET: delete all records from OFFSET on. Keep a copy of DIR.

    The checkpoint files of the log directory follow what was done.
    """
    from tiering.log_tools.opened_partition import Opening, opened
    from tiering.log_tools.partition import describe

    with opened(folder, Opening(_config(settings))) as log:
        log.truncate_to(offset)
        state = describe(log)
    emit([state], output)
