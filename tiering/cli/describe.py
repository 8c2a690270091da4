"""`tiering describe`: what lies in which tier, per partition."""

from collections.abc import Iterator
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from local_log.errors import LogError, NotFound
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import archive_option, keys_option, log_dir_option, output_option, topic_id_option
from tiering.command.output import Row, emit, say, warn
from tiering.command.terminal import printable

if TYPE_CHECKING:
    from tiering.read.coverage import Coverage
    from tiering.read.tiered_log import TieredLog
    from tiering.wiring import Tiers


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering describe`."""

    archive_url: str
    log_dir_path: str | None
    keys_address: str | None
    topic: str | None
    topic_id: str | None
    coverage: bool | None
    output: str


@click.command("describe")
@archive_option(required=True)
@log_dir_option()
@keys_option()
@click.argument("topic", required=False)
@topic_id_option()
@click.option(
    "--coverage/--no-coverage", default=None,
    help="Draw the offsets and times of each tier, or add them to JSON. Default: only with TOPIC.",
)  # fmt: skip
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Show the offsets, segments and bytes of each tier for every partition of all topics, or of TOPIC.

    For one TOPIC a chart of each partition follows, as wide as the terminal: one column for each range of offsets or time, one
    line for each tier. A range in both tiers appears in both lines. A gap appears as !, however small it is.

    A partition that cannot be read is reported on standard error, and the others are shown. With keys, this includes partitions
    whose manifest is not signed or has an invalid signature.

    \b
    Examples:
      tiering describe --archive s3://bucket/kafka
      tiering describe --archive s3://bucket/kafka --log-dir /var/lib/kafka orders
    """
    from tiering.wiring import open_tiers

    options = Options(**given)
    if options.topic_id is not None and options.topic is None:
        raise click.UsageError("--topic-id needs one TOPIC: name it")
    tiers = open_tiers(options.log_dir_path, options.archive_url, warn=warn, keys_address=options.keys_address)
    errors: list[Exception] = []
    shown: list[tuple[str, Coverage | None]] = []
    rows = _rows(tiers, options, errors, shown)
    emit(rows, options.output, as_text=lambda row: {name: value for name, value in row.items() if name != "coverage"})
    charts = [(name, coverage) for name, coverage in shown if coverage is not None]
    if options.output == "table" and charts:
        _draw(charts)
    return exit_code_of_all(errors, partly=bool(shown))


def _rows(tiers: "Tiers", options: Options, errors: list[Exception], shown: "list[tuple[str, Coverage | None]]") -> Iterator[Row]:
    """A row for each partition, noted in `shown` with the coverage to draw; what is wrong with the others is in `errors`."""
    from tiering.read.coverage import as_json, coverage_of
    from tiering.read.tiered_log import TieredLog

    is_drawn = options.topic is not None if options.coverage is None else options.coverage
    for name, number, log in _partitions(tiers, options.topic, options.topic_id):
        try:
            row = _row(name, number, log)
            coverage = coverage_of(log) if is_drawn and isinstance(log, TieredLog) else None
        except LogError as e:
            say(f"tiering: {name}-{number}: {e}")
            errors.append(e)
            continue
        shown.append((f"{name}-{number}", coverage))
        yield row if coverage is None else {**row, "coverage": as_json(coverage)}


def _draw(drawn: "list[tuple[str, Coverage]]") -> None:
    from tiering.read.coverage_chart import LEGEND, coverage_chart

    width = get_terminal_size().columns
    for name, coverage in drawn:
        click.echo("\n" + "\n".join(map(printable, coverage_chart(name, coverage, width))))
    click.echo(f"\n{LEGEND}")


def _partitions(tiers: "Tiers", topic: str | None, topic_id: str | None) -> "Iterator[tuple[str, int, TieredLog | LogError]]":
    for name in tiers.topics() if topic is None else (topic,):
        try:
            partitions = tiers.found(name, topic_id=topic_id)
        except NotFound:
            if topic is None:
                continue  # a folder without a manifest that was not asked for by name
            raise
        for number, log in partitions.items():
            yield name, number, log


def _row(topic: str, partition: int, log: "TieredLog | LogError") -> Row:
    """Raises the error that stands in the log's place, and what reading the local log's end raises."""
    from tiering.read.tiered_log import TieredLog

    if not isinstance(log, TieredLog):
        raise log
    local, archived = log.local, log.archived
    return {
        "topic": topic,
        "partition": partition,
        "log_start_offset": log.log_start_offset,
        "local_log_start_offset": local.log_start_offset if local else None,
        "archived_up_to": archived.end_offset if archived else None,
        "log_end_offset": local.log_end_offset if local else None,
        "local_segments": len(local.segments) if local else None,
        "local_bytes": sum(s.size() for s in local.segments) if local else None,
        "archived_segments": archived.manifest.segment_count if archived else 0,
        "archived_bytes": archived.manifest.log_bytes + archived.manifest.aux_bytes if archived else 0,
        "gaps": len(archived.manifest.holes) if archived else 0,
    }
