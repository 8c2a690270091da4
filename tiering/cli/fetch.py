"""`tiering fetch`: records from an offset on, from whichever tier has them."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from tiering.command.exit_codes import reports_errors
from tiering.command.options import (
    Number,
    archive_option,
    cache_dir_option,
    is_given,
    keys_option,
    log_dir_option,
    output_option,
    partition_option,
    topic_id_option,
    topic_option,
)
from tiering.command.output import Row, emit, say, warn
from tiering.command.quantities import time
from tiering.command.records import CUT, ENCODINGS, RecordFormat, in_a_table, parse_format, payload_of, row_of
from tiering.command.start_option import End, Start, StartType

if TYPE_CHECKING:
    from tiering.command.topic_records import Found

THREADS = 4
_PYTHON_RECORDS: Final = 1000
"""Records of a batch that become Python objects at the same time."""

Record = tuple[int, Mapping[str, Any]]
"""A partition, and a decoded record of it."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering fetch`."""

    archive_url: str | None
    log_dir_path: str | None
    keys_address: str | None
    cache_dir: str | None
    topic: str
    topic_id: str | None
    partition: int | None
    offset: Start
    from_time: int | None
    key: str | None
    key_hex: str | None
    max_records: int | None
    isolation: str
    follow: bool
    encoding: str
    record_format: RecordFormat | None
    output: str


def _format(_context: click.Context, _param: click.Parameter, value: str | None) -> RecordFormat | None:
    try:
        return None if value is None else parse_format(value)
    except ValueError as e:
        raise click.BadParameter(str(e)) from e


@click.command("fetch")
@archive_option()
@log_dir_option()
@keys_option()
@cache_dir_option()
@topic_option()
@topic_id_option()
@partition_option("The partition. Default: all of them, one after the other.")
@click.option(
    "--offset",
    type=StartType(),
    default=End.earliest.value,
    show_default=True,
    metavar="OFFSET",
    help="The first offset to read: a number, earliest, latest, or -10 for the last ten offsets of each partition.",
)
@click.option("--from-time", type=time(), metavar="TIME", help="Instead of --offset: start at the first record at or after this.")
@click.option("--key", metavar="TEXT", help="Only records with this key.")
@click.option("--key-hex", metavar="HEX", help="The same, as hexadecimal bytes.")
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
@click.option("--follow", is_flag=True, help="At the end of the log wait for new records, until Ctrl-C.")
@click.option(
    "--encoding",
    type=click.Choice(ENCODINGS),
    default="text",
    show_default=True,
    help="The encoding of keys and values.",
)
@click.option(
    "--format",
    "record_format",
    callback=_format,
    metavar="FORMAT",
    help="Instead of --output: print each record in this form, as kcat -f, such as '%T %k: %s\\n'.",
)
@output_option()
@reports_errors
def command(**given: Any) -> None:
    """Read records from an offset or a time on, of one partition or of all partitions of a topic.

    Keys, values and headers are text where they are UTF-8. What is not is {"base64": "AAE="} in JSON, and base64:AAE= in the
    table, which cuts long texts. With --encoding base64 all of them are plain base64, as JSON always had them in versions
    without --encoding.

    In JSON a record has partition, offset, timestamp (ms since 1970), key, value, and headers: a list of [key, value]. A key or
    a value that is missing is null.

    --format prints, as kcat does: %s value, %S its length (-1 for null), %R that length as four bytes, %k key, %K its length,
    %T timestamp in ms, %h headers, %t topic, %p partition, %o offset, %% a percent sign; \\n, \\r, \\t and \\x0a are these bytes.
    Bytes are printed as they are, but on a terminal those that it would obey are written out.

    \b
    Examples:
      tiering fetch --archive s3://bucket/kafka --topic orders --max-records 10
      tiering fetch --archive s3://bucket/kafka --topic orders --from-time -2h --key customer-17
      tiering fetch --config tiering.toml --topic orders --partition 0 --offset 4711 --output jsonl
      tiering fetch --config tiering.toml --topic orders --offset -10 --follow --format '%T %k: %s\\n'
    """
    options = Options(**given)
    _refuse_contradictions(options)
    _fetch(options)


def _fetch(options: Options) -> None:
    # What reads records is loaded for that alone: help and completion answer without it.
    from tiering.command.topic_records import TopicRecords
    from tiering.machine import CLOCK
    from tiering.read.tiered_log import Isolation
    from tiering.wiring import CACHE_BYTES_MAX, open_reading, open_tiers, read_ahead_pool

    key = _key(options)
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
        wanted = TopicRecords(
            tiers=tiers, topic=options.topic, topic_id=options.topic_id, partition=options.partition, start=options.offset,
            from_ms=options.from_time, isolation=Isolation(options.isolation), key=key,
        )  # fmt: skip
        logs = wanted.opened()
        _refuse_an_offset_of_several(options, len(logs))
        for log in logs.values():
            if log.local is not None and log.local.unproven:
                say(f"tiering: {log.local.unproven}")
        _print(wanted.follow(logs, CLOCK) if options.follow else wanted.read(logs), options)


def _refuse_contradictions(options: Options) -> None:
    if options.archive_url is None and options.log_dir_path is None:
        raise click.UsageError("give --archive, --log-dir or both")
    if options.from_time is not None and is_given("offset"):
        raise click.UsageError("--from-time and --offset both say where to start: leave one of them out")
    if options.record_format is not None and is_given("output"):
        raise click.UsageError("--format and --output both say what is printed: leave one of them out")
    if options.follow and options.output == "json":
        raise click.UsageError("--follow has no end, which a JSON array needs: give --output jsonl")
    if options.key is not None and options.key_hex is not None:
        raise click.UsageError("--key and --key-hex mean the same; give only one of them")


def _key(options: Options) -> bytes | None:
    if options.key_hex is None:
        return None if options.key is None else os.fsencode(options.key)
    try:
        return bytes.fromhex(options.key_hex)
    except ValueError as e:
        raise click.BadParameter(f"{options.key_hex!r} is not hexadecimal", param_hint="--key-hex") from e


def _refuse_an_offset_of_several(options: Options, partitions: int) -> None:
    if partitions > 1 and options.from_time is None and isinstance(options.offset, int) and options.offset >= 0:
        raise click.UsageError(
            f"{options.topic} has {partitions} partitions, and offset {options.offset} is of one of them: give --partition, "
            "or an --offset that is good for all: earliest, latest or such as -10; or --from-time"
        )


def _print(found: Iterable["Found | None"], options: Options) -> None:
    """Prints records in the form that is asked for; None says that the next ones may take their time."""
    records = _some(_records(found), options.max_records)
    if options.record_format is not None:
        _print_formatted(records, options, options.record_format)
        return
    hidden = {"partition"} if options.partition is not None else set()

    def as_text(row: Row) -> Row:
        return {name: value for name, value in in_a_table(row).items() if name not in hidden}

    rows = (None if one is None else row_of(*one, options.encoding) for one in records)
    emit(rows, options.output, as_text=as_text, cut=CUT)


def _records(found: Iterable["Found | None"]) -> Iterator[Record | None]:
    for part in found:
        if part is None:
            yield None
            continue
        number, batch = part
        for start in range(0, batch.num_rows, _PYTHON_RECORDS):
            for record in batch.slice(start, _PYTHON_RECORDS).to_pylist():
                yield number, record


def _some(records: Iterable[Record | None], max_records: int | None) -> Iterator[Record | None]:
    """As many records at most, and no look at what comes behind them."""
    left = max_records
    for record in records:
        yield record
        if left is not None and record is not None:
            left -= 1
            if not left:
                return


def _print_formatted(records: Iterable[Record | None], options: Options, form: RecordFormat) -> None:
    payload = payload_of(options.encoding, for_terminal=sys.stdout.isatty())
    out = sys.stdout.buffer
    for one in records:
        if one is None:
            out.flush()
        else:
            out.write(form.of(options.topic, *one, payload))
    out.flush()
