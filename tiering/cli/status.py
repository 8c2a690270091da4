"""`tiering status`: what runs, and how far the archive lags."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from local_log.errors import Invalid, LogError, Unavailable
from local_log.quantities import duration_text, size_text
from remote.clock import stopwatch
from tiering.command.config_option import whole_config, whole_config_options
from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.options import output_option
from tiering.command.output import Row, counted, emit, warn
from tiering.command.table import beside
from tiering.command.terminal import alarming, columns, printable
from tiering.machine import CLOCK, folder_holder, open_store

if TYPE_CHECKING:
    from remote.store.api import ObjectStore
    from remote.store.instrumented import Meter
    from tiering.config.config import Config

_IN_TABLE = (
    "topic", "partition", "lost_offsets", "lag_segments", "lag_bytes", "lag_ms", "unprotected_records", "unprotected_bytes",
    "archived_up_to", "archived_segments", "archived_bytes", "error",
)  # fmt: skip
_WITHOUT_LOSSES = tuple(name for name in _IN_TABLE if name != "lost_offsets")


@click.command("status")
@whole_config_options
@output_option()
@reports_errors
def command(config_file: str | None, overrides: tuple[str, ...], output: str) -> Exit | None:
    """Show what the agent does, its last error, losses, and what is not archived yet of each partition, the longest lag first.

    If no agent runs or responds, the same is read from the log directories and the archive; archive.keys verifies the
    signatures of its manifests. The exit code is 3 if a partition has an error, if offsets are lost and not acknowledged,
    or if the store does not respond: then only the log directories are shown.

    \b
    Examples:
      tiering status --config tiering.toml
      tiering status --config tiering.toml --output json
    """
    from remote.store.instrumented import Meter
    from tiering.agent import status as of
    from tiering.agent.configured import addresses, checked, memory_file
    from tiering.agent.topic_retention import known_retention
    from tiering.log_dirs import cluster_of

    config = whole_config(config_file, overrides)
    try:
        dirs, url = checked(config)
    except Invalid as e:
        raise click.UsageError(str(e)) from e
    memory = memory_file(config, os.environ).load()
    meter = Meter()
    cluster = cluster_of((config.settings.metadata_log_dir, *config.settings.log_dirs))
    places = of.Places(
        dirs, _store(url, config, meter), config, memory, addresses(config, os.environ), known_retention(config, cluster),
        lambda patience_s: meter.trouble(stopwatch(), patience_s),
    )  # fmt: skip
    found = of.status(places, folder_holder(), CLOCK)
    if found["address"] is None and found["store_failing_since_ms"] is None:
        _tell_if_nothing_is_there(places.store)
    _show(found, output)
    has_errors = any(row["error_ms"] is not None for row in found["partitions"])
    is_wrong = has_errors or found["store_failing_since_ms"] is not None or found["lost_offsets"]
    return Exit.partly if is_wrong else None


def _show(found: Mapping[str, Any], output: str) -> None:
    from tiering.agent import status as of

    if output == "json":
        click.echo(json.dumps(found, indent=1))
    else:
        if output == "table":
            for name, text in _lines(found):
                for line in beside(f"{name:<12} ", printable(text), columns(sys.stdout)):
                    click.echo(alarming(line, sys.stdout) if name == "lost" else line)
        emit(of.rows(found), output, as_text=partial(_short, names=_IN_TABLE if found["lost_offsets"] else _WITHOUT_LOSSES))


def _store(url: str, config: "Config", meter: "Meter") -> "ObjectStore":
    """The archive's store. If the keys cannot be read, prints that and uses the archive without them."""
    from remote.signed_store import trusted
    from tiering.agent.configured import keys_address

    store = open_store(url, meter=meter)
    try:
        return trusted(store, keys_address(config))
    except (Invalid, Unavailable) as e:
        warn(f"signatures of manifests are not checked: {e}")
        return store


def _tell_if_nothing_is_there(store: "ObjectStore") -> None:
    """A folder that is not mounted answers, and looks like an archive before its first offload."""
    from remote.archive import open_archive

    try:
        open_archive(store)
    except LogError as e:
        warn(str(e))


def _short(row: Row, names: Sequence[str]) -> Row:
    return {name: row[name] for name in names}


def _lines(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    where = f" at {found['address']}, since {_time(found['started_ms'])}" if found["address"] else ""
    yield "agent", f"{found['state']}{where}"
    yield "log dirs", ", ".join(found["log_dirs"])
    if found.get("local_tier"):
        yield "local tier", _local_tier(found["local_tier"])
    yield "archive", found["archive"]
    since_ms, problem = found["store_failing_since_ms"], found.get("store_problem")  # an agent of before does not say which
    yield "store", f"does not respond since {_time(since_ms)}{f': {problem}' if problem else ''}" if since_ms else "answers"
    lag = f"{size_text(found['lag_bytes'])}, {duration_text(found['lag_ms'])}"
    yield "lag", f"{counted(found['lag_segments'], 'segment')}, {lag}"
    yield "unprotected", _unprotected(found)
    if found["lost_offsets"]:
        since = f"known since {_time(found['lost_since_ms'])}"
        yield "lost", f"{counted(found['lost_offsets'], 'offset')}, {since}; see docs/operations.md, Offsets were lost"
    error = found["last_error"]
    yield "last error", f"{_time(error['at_ms'])} {error['message']}" if error else "none"
    yield "last sweep", _time(found["last_sweep_ms"])
    scrub = found["last_scrub"]
    yield "last scrub", _scrubbed(scrub) if scrub else "none by an agent"


def _local_tier(tier: Mapping[str, Any]) -> str:
    """The state of log directories of our own."""
    if tier["state"] == "opening":
        return f"opening: {tier['logs_left']} of {counted(tier['logs'], 'log')} left"
    parts = [f"{tier['state']}, {counted(tier['logs'], 'log')}"]
    parts += [f"offline: {text}" for text in tier["offline"]]
    parts += [f"without a log: {', '.join(tier['missing'])}"] if tier["missing"] else []
    parts += [f"last problem: {tier['problems'][-1]}"] if tier["problems"] else []
    return "; ".join(parts)


def _unprotected(found: Mapping[str, Any]) -> str:
    size, age = size_text(found["unprotected_bytes"]), duration_text(found["unprotected_ms"])
    amount = f"{counted(found['unprotected_records'], 'offset')}, {size}, {age}"
    deleted_ms = found["unprotected_deleted_ms"]
    return f"{amount}{f'; brokers delete the first of it at {_time(deleted_ms)}' if deleted_ms is not None else ''}"


def _scrubbed(scrub: Mapping[str, Any]) -> str:
    findings = scrub["findings"]
    wrong = f"{counted(len(findings), 'anomaly', 'anomalies')}, the first {findings[0]}" if findings else "no anomaly"
    unreadable = scrub.get("unreadable", ())  # an agent of before does not say which
    not_read = f"; {counted(len(unreadable), 'segment')} unreadable, the first {unreadable[0]}" if unreadable else ""
    failed = f"; {counted(scrub['failed'], 'topic')} could not be finished" if scrub["failed"] else ""
    return f"{_time(scrub['ended_ms'])} {counted(scrub['topics'], 'topic')}, {wrong}{not_read}{failed}"


def _time(ms: int | None) -> str:
    """A time as ISO 8601 has it, to the second."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if ms else "none"
