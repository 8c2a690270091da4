"""`tiering fetch`: records from an offset on, from whichever tier has them."""

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from tiering.command.exit_codes import reports_errors
from tiering.command.options import (
    Number,
    archive_option,
    cache_dir_option,
    keys_option,
    log_dir_option,
    output_option,
    partition_option,
    topic_id_option,
    topic_option,
)
from tiering.command.output import Row, emit, say, warn

if TYPE_CHECKING:
    from tiering.read.tiered_log import Isolation, TieredLog

THREADS = 4
_TEXT_MAX = 60


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering fetch`."""

    archive_url: str | None
    log_dir_path: str | None
    keys_address: str | None
    cache_dir: str | None
    topic: str
    topic_id: str | None
    partition: int
    offset: int
    max_records: int | None
    isolation: str
    output: str


@click.command("fetch")
@archive_option()
@log_dir_option()
@keys_option()
@cache_dir_option()
@topic_option()
@topic_id_option()
@partition_option("The partition.", required=True)
@click.option("--offset", type=Number(), required=True, metavar="N", help="The first offset to read.")
@click.option(
    "--max-records",
    type=Number(1),
    metavar="N",
    help="Stop after this many records. Default: at the end of the log.",
)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="With read_committed, skip records of open and aborted transactions.",
)
@output_option()
@reports_errors
def command(**given: Any) -> None:
    """Read records from an offset on. In JSON, keys, values and headers are base64; the table shows the start of each as text.

    \b
    Examples:
      tiering fetch --archive s3://bucket/kafka --topic orders --partition 0 --offset 0 --max-records 10
      tiering fetch --config tiering.toml --topic orders --partition 0 --offset 4711 --output jsonl
    """
    from tiering.read.tiered_log import Isolation
    from tiering.wiring import CACHE_BYTES_MAX, open_reading, open_tiers, read_ahead_pool

    options = Options(**given)
    if options.archive_url is None and options.log_dir_path is None:
        raise click.UsageError("give --archive, --log-dir or both")
    with read_ahead_pool(THREADS) as pool:
        reading = open_reading(options.cache_dir, CACHE_BYTES_MAX, pool, options.keys_address)
        tiers = open_tiers(
            options.log_dir_path,
            options.archive_url,
            reading,
            warn=warn,
            keys_address=options.keys_address,
            cache_dir=options.cache_dir,
        )
        log = tiers.partition(options.topic, options.partition, options.topic_id)
        if log.local is not None and log.local.unproven:
            say(f"tiering: {log.local.unproven}")
        emit(
            islice(_rows(log, options.offset, Isolation(options.isolation)), options.max_records),
            options.output,
            as_text=_as_text,
        )


def _rows(log: "TieredLog", offset: int, isolation: "Isolation") -> Iterator[Row]:
    from tiering.log_tools.dump import payload

    for batch in log.read(offset, isolation=isolation):
        for r in batch.to_pylist():
            yield {"offset": r["offset"], "timestamp": r["timestamp"], **payload(r)}


def _as_text(row: Row) -> Row:
    try:
        time = datetime.fromtimestamp(row["timestamp"] / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        time = str(row["timestamp"])  # some producers write micro- or nanoseconds
    headers = ", ".join(f"{_text(k)}={_text(v)}" for k, v in row["headers"])
    return {
        "offset": row["offset"],
        "timestamp": time,
        "key": _text(row["key"]),
        "value": _text(row["value"]),
        "headers": headers[:_TEXT_MAX],
    }


def _text(encoded: str | None) -> str:
    if encoded is None:
        return "null"
    text = b64decode(encoded[: _TEXT_MAX * 4]).decode("utf-8", errors="replace")
    shown = "".join(c if c.isprintable() else "·" for c in text)
    return shown if len(shown) <= _TEXT_MAX else shown[: _TEXT_MAX - 1] + "…"
