"""`tiering describe`: what lies in which tier, per partition."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from local_log.errors import LogError, NotFound, listed
from tiering.command.completion import topics
from tiering.command.config_option import is_left_alone, topic_globs
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    archive_option,
    keys_option,
    log_dir_option,
    output_option,
    tell_unmatched,
    topic_id_option,
    topics_option,
)
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
    topics: tuple[str, ...]
    topic_id: str | None
    coverage: bool | None
    output: str


@click.command("describe")
@archive_option(required=True)
@log_dir_option()
@keys_option()
@click.argument("topic", required=False, shell_complete=topics)
@topics_option()
@topic_id_option()
@click.option(
    "--coverage/--no-coverage", default=None,
    help="Draw the offsets and times of each tier, or add them to JSON. Default: only if one topic is asked for.",
)  # fmt: skip
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Show the offsets, segments and bytes of each tier for every partition of all topics, of those that match, or of TOPIC.

    Topics that the configuration excludes are shown if they are asked for by name or --topic. An archive that does not exist yet
    is shown as empty, if there is a log directory.

    For one topic a chart of each partition follows, as wide as the terminal: one column for each range of offsets or time, one
    line for each tier. A range in both tiers appears in both lines. A gap appears as !, however small it is.

    A partition that cannot be read is reported on standard error, and the others are shown. With keys, this includes partitions
    whose manifest is not signed or has an invalid signature.

    \b
    Examples:
      tiering describe --archive s3://bucket/kafka
      tiering describe --archive s3://bucket/kafka --log-dir /var/lib/kafka orders
      tiering describe --config tiering.toml --topic 'orders*'
    """
    options = Options(**given)
    if options.topic is not None and options.topics:
        raise click.UsageError("TOPIC and --topic both say which topics: leave one of them out")
    tiers = _tiers(options)
    names = _names(tiers, options)
    if options.topic_id is not None and len(names) != 1:
        raise click.UsageError("--topic-id needs one TOPIC: name it")
    errors: list[Exception] = []
    shown: list[tuple[str, Coverage | None]] = []
    rows = _rows(tiers, names, options, errors, shown)
    emit(rows, options.output, as_text=lambda row: {name: value for name, value in row.items() if name != "coverage"})
    charts = [(name, coverage) for name, coverage in shown if coverage is not None]
    if options.output == "table" and charts:
        _draw(charts)
    return exit_code_of_all(errors, partly=bool(shown))


def _tiers(options: Options) -> "Tiers":
    """Both tiers; the log directory alone where there is no archive yet."""
    from tiering.wiring import open_tiers

    try:
        return open_tiers(options.log_dir_path, options.archive_url, warn=warn, keys_address=options.keys_address)
    except NotFound as e:
        if options.log_dir_path is None:
            raise
        say(f"tiering: nothing is archived yet: {e}")
        return open_tiers(options.log_dir_path, None)


def _names(tiers: "Tiers", options: Options) -> Sequence[str]:
    """The topics to show. Tells of globs that match none. Raises NotFound if no topic matches."""
    if options.topic is not None:
        return (options.topic,)
    names, globs = tiers.topics(), topic_globs(options.topics)
    found = [name for name in names if not globs or any(fnmatchcase(name, glob) for glob in globs)]
    if not options.topics:
        return [name for name in found if not is_left_alone(name)]
    if not found:
        raise NotFound(f"{options.archive_url}: no topic matches {listed(options.topics)}; there are: {listed(names)}")
    tell_unmatched(globs, names, options.archive_url)
    return found


def _rows(  # the last two parameters take what is found besides
    tiers: "Tiers",
    names: Sequence[str],
    options: Options,
    errors: list[Exception],
    shown: "list[tuple[str, Coverage | None]]",
) -> Iterator[Row]:
    """A row for each partition, noted in `shown` with the coverage to draw; what is wrong with the others is in `errors`."""
    is_asked_for = options.topic is not None or bool(options.topics)
    is_drawn = is_asked_for and len(names) == 1 if options.coverage is None else options.coverage
    for name, number, log in _partitions(tiers, names, options):
        try:
            row = _row(name, number, log)
            coverage = _coverage(log) if is_drawn else None
        except LogError as e:
            say(f"tiering: {name}-{number}: {e}")
            errors.append(e)
            continue
        shown.append((f"{name}-{number}", coverage))
        yield row if coverage is None else {**row, "coverage": _as_json(coverage)}


def _coverage(log: "TieredLog | LogError") -> "Coverage | None":
    from tiering.read.coverage import coverage_of  # who draws nothing does not wait for it
    from tiering.read.tiered_log import TieredLog

    return coverage_of(log) if isinstance(log, TieredLog) else None


def _as_json(coverage: "Coverage") -> Row:
    from tiering.read.coverage import as_json

    return as_json(coverage)


def _draw(drawn: "list[tuple[str, Coverage]]") -> None:
    from shutil import get_terminal_size  # which brings what compresses archives of files

    from tiering.read.coverage_chart import LEGEND, coverage_chart

    width = get_terminal_size().columns
    for name, coverage in drawn:
        click.echo("\n" + "\n".join(map(printable, coverage_chart(name, coverage, width))))
    click.echo(f"\n{LEGEND}")


def _partitions(tiers: "Tiers", names: Sequence[str], options: Options) -> "Iterator[tuple[str, int, TieredLog | LogError]]":
    for name in names:
        try:
            partitions = tiers.found(name, topic_id=options.topic_id)
        except NotFound:
            if options.topic is None and options.topic_id is None:
                continue  # a folder without a manifest that was not asked for by name
            raise
        for number, log in partitions.items():
            yield name, number, log


def _row(topic: str, partition: int, log: "TieredLog | LogError") -> Row:
    """Raises the error that stands in the log's place, and what reading the local log's end raises."""
    from remote.manifest.losses import missing_for_readers
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
        "gaps": len(missing_for_readers(archived.manifest)) if archived else 0,
    }
