"""`tiering offsets`: ListOffsets over both tiers, with the words and the form of kafka-get-offsets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from local_log.quantities import parse_time
from tiering.command.completion import times
from tiering.command.exit_codes import reports_errors
from tiering.command.offset_table import show, show_segments
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
from tiering.machine import CLOCK

if TYPE_CHECKING:
    from local_log.formats.list_offsets import TimestampOffset
    from tiering.read.tiered_log import TieredLog
    from tiering.wiring import Tiers

_TIMES: "dict[str, Callable[[TieredLog], TimestampOffset | None]]" = {
    "latest": lambda log: log.latest(),
    "earliest": lambda log: log.earliest(),
    "max-timestamp": lambda log: log.latest_timestamp(),
    "earliest-local": lambda log: log.earliest_local(),
    "latest-tiered": lambda log: log.latest_tiered(),
    "earliest-pending-upload": lambda log: log.earliest_pending_upload(),
}
_DIGITS_MAX = 100
_NUMBERS = {str(-1 - i): name for i, name in enumerate(_TIMES)}


def _time(_context: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    value = _NUMBERS.get(value, value)
    if value in _TIMES:
        return value
    if value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        return value  # also beyond 64 bits: no record is as late, which is an answer
    return str(_ms(value, ", ".join(_TIMES)))


def _ms(value: str, words: str) -> int:
    try:
        return parse_time(value, CLOCK.now_ms())
    except ValueError as e:
        raise click.BadParameter(f"{e}, or {words}") from e


def _segments_time(_context: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    from local_log.formats.list_offsets import EARLIEST, LATEST

    ends = {"latest": LATEST, "earliest": EARLIEST, str(LATEST): LATEST, str(EARLIEST): EARLIEST}
    if value in ends:
        return ends[value]
    if value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX:
        return int(value)
    return _ms(value, "latest or earliest")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering offsets`."""

    archive_url: str | None
    log_dir_path: str | None
    keys_address: str | None
    cache_dir: str | None
    topic: str
    topic_id: str | None
    time: str | None
    segments_before: int | None
    output: str


@click.command("offsets")
@archive_option()
@log_dir_option()
@keys_option()
@cache_dir_option()
@topic_option()
@topic_id_option()
@click.option(
    "--time",
    callback=_time,
    shell_complete=times,
    metavar="TIME",
    help=f"Find the offset of this time: ms since 1970, 2026-11-20T10:00Z, -2h, or {', '.join(_TIMES)} (latest unless given).",
)
@click.option(
    "--segments-before",
    callback=_segments_time,
    metavar="TIME",
    help="List the base offsets of all segments written by this time, newest first; as --time, or latest or earliest.",
)
@output_option()
@reports_errors
def command(**given: Any) -> None:
    """Find the first offset at or after a time, or one of the log's own offsets, for every partition.

    The table has lines `topic:partition:offset`, with nothing after the last colon if there is no such offset.

    With --segments-before it has all offsets of ListOffsets version 0, with commas between them: the base offsets of the segments
    of both tiers that were last written at or before the time, and before them the end offset, which counts as written now. A
    segment that is only in the archive counts as written at its latest timestamp.

    \b
    Examples:
      tiering offsets --archive s3://bucket/kafka --topic orders --time earliest
      tiering offsets --archive s3://bucket/kafka --topic orders --time 2026-01-01T00:00Z
      tiering offsets --archive s3://bucket/kafka --topic orders --segments-before 1767225600000
    """
    from tiering.read.segments_before import segments_before

    options = Options(**given)
    if options.archive_url is None and options.log_dir_path is None:
        raise click.UsageError("give --archive, --log-dir or both")
    if options.time is not None and options.segments_before is not None:
        raise click.UsageError("give --time or --segments-before, not both")
    logs = _tiers(options).partitions(options.topic, options.topic_id)
    for log in logs.values():
        if log.local is not None and log.local.unproven:
            say(f"tiering: {log.local.unproven}")
    if options.segments_before is not None:
        before, now_ms = options.segments_before, CLOCK.now_ms()
        show_segments(((options.topic, n, segments_before(log, before, now_ms)) for n, log in logs.items()), options.output)
        return
    time = options.time or "latest"
    find = _TIMES.get(time) or (lambda log: log.offset_for_time(int(time)))
    show(((options.topic, n, find(log)) for n, log in logs.items()), options.output)


def _tiers(options: Options) -> "Tiers":
    from tiering.wiring import CACHE_BYTES_MAX, open_reading, open_tiers

    reading = open_reading(options.cache_dir, CACHE_BYTES_MAX, None, options.keys_address)
    return open_tiers(
        options.log_dir_path,
        options.archive_url,
        reading,
        warn=warn,
        keys_address=options.keys_address,
        cache_dir=options.cache_dir,
    )
