"""`tiering offsets`: ListOffsets over both tiers, with the words and the form of kafka-get-offsets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from local_log.formats.list_offsets import TimestampOffset
from tiering.command.exit_codes import reports_errors
from tiering.command.offset_table import show
from tiering.command.options import (
    archive_option,
    cache_dir_option,
    keys_option,
    log_dir_option,
    output_option,
    topic_id_option,
    topic_option,
)
from tiering.command.output import say, warn
from tiering.read.tiered_log import TieredLog
from tiering.wiring import CACHE_BYTES_MAX, open_reading, open_tiers

_TIMES: dict[str, Callable[[TieredLog], TimestampOffset | None]] = {
    "latest": TieredLog.latest,
    "earliest": TieredLog.earliest,
    "max-timestamp": TieredLog.latest_timestamp,
    "earliest-local": TieredLog.earliest_local,
    "latest-tiered": TieredLog.latest_tiered,
    "earliest-pending-upload": TieredLog.earliest_pending_upload,
}
_DIGITS_MAX = 100
_NUMBERS = {str(-1 - i): name for i, name in enumerate(_TIMES)}


def _time(_context: click.Context, _param: click.Parameter, value: str) -> str:
    value = _NUMBERS.get(value, value)
    if value in _TIMES:
        return value
    if value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        return value  # also beyond 64 bits: no record is as late, which is an answer
    raise click.BadParameter(f"{value!r} is neither milliseconds since 1970 nor one of {', '.join(_TIMES)}")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering offsets`."""

    archive_url: str | None
    log_dir_path: str | None
    keys_address: str | None
    cache_dir: str | None
    topic: str
    topic_id: str | None
    time: str
    output: str


@click.command("offsets")
@archive_option()
@log_dir_option()
@keys_option()
@cache_dir_option()
@topic_option()
@topic_id_option()
@click.option(
    "--time", callback=_time, default="latest", show_default=True, metavar="TIME", help=f"Milliseconds, or {', '.join(_TIMES)}."
)
@output_option()
@reports_errors
def command(**given: Any) -> None:
    """Find the first offset at or after a time, or one of the log's own offsets, for every partition.

    The table has lines `topic:partition:offset`, with nothing after the last colon if there is no such offset.

    \b
    Examples:
      tiering offsets --archive s3://bucket/kafka --topic orders --time earliest
      tiering offsets --archive s3://bucket/kafka --topic orders --time 1767225600000
    """
    options = Options(**given)
    if options.archive_url is None and options.log_dir_path is None:
        raise click.UsageError("give --archive, --log-dir or both")
    find = _TIMES.get(options.time) or (lambda log: log.offset_for_time(int(options.time)))
    reading = open_reading(options.cache_dir, CACHE_BYTES_MAX, None, options.keys_address)
    tiers = open_tiers(
        options.log_dir_path,
        options.archive_url,
        reading,
        warn=warn,
        keys_address=options.keys_address,
        cache_dir=options.cache_dir,
    )
    logs = tiers.partitions(options.topic, options.topic_id)
    for log in logs.values():
        if log.local is not None and log.local.unproven:
            say(f"tiering: {log.local.unproven}")
    show(((options.topic, n, find(log)) for n, log in logs.items()), options.output)
