"""`tiering agent`: copies, expires, sweeps and scrubs continuously."""

import os
import signal
import sys
from typing import TYPE_CHECKING

import click

from local_log.errors import Invalid, LogError, Unavailable
from tiering.command.completion import folders
from tiering.command.config_option import whole_config, whole_config_options
from tiering.command.exit_codes import Exit, exit_code_of, reports_errors
from tiering.command.log_lines import FORMATS, LogLines
from tiering.command.options import is_given, named
from tiering.command.output import say
from tiering.machine import CLOCK

if TYPE_CHECKING:
    from tiering.agent.http.server import Pages
    from tiering.agent.wiring import Built
    from tiering.config.config import Config

Given = tuple[str | None, tuple[str, ...]]


@click.group("agent", invoke_without_command=True)
@whole_config_options
@click.option(
    "--own-log-dir", callback=named, shell_complete=folders, metavar="DIR",
    help="The log directory, which no broker uses: log.dirs=DIR with own.log.dirs=true.",
)  # fmt: skip
@click.option(
    "--log-format", type=click.Choice(FORMATS),
    help="Log a line for each event, with its time, level and fields. Default: only what a person has to know.",
)  # fmt: skip
@click.pass_context
def command(
    context: click.Context, config_file: str | None, overrides: tuple[str, ...], own_log_dir: str | None, log_format: str | None
) -> None:
    """Run continuously: copy closed segments of the log directories, and expire, sweep and scrub the archive.

    The configuration sets the tasks and their intervals; see `tiering config show`. After SIGTERM or SIGINT, running copies
    have agent.shutdown.timeout.ms to finish their segment; a second signal aborts them. It is safe to kill the agent: no
    manifest refers to an unfinished copy, and the next agent continues. It serves a page for browsers, /status, /metrics,
    /healthz and /readyz at agent.http.address.

    \b
    Examples:
      tiering agent --config tiering.toml
      tiering agent --config tiering.toml --override agent.tasks=copy,scrub
      tiering agent --config tiering.toml --log-format json
    """
    if own_log_dir is not None:
        overrides = (*overrides, f"log.dirs={own_log_dir}", "own.log.dirs=true")
    context.obj = config_file, overrides
    if context.invoked_subcommand is None:
        _run(whole_config(config_file, overrides), LogLines(log_format, CLOCK))


@reports_errors
def _run(config: "Config", log: LogLines) -> Exit | None:
    from tiering.agent.wiring import alone

    _refuse_half(config)
    try:
        with alone(config):
            return _live(config, log)
    except LogError as e:  # in the form of the log, which somebody else's program may read
        log.problem(str(e))
        return exit_code_of(e)


def _live(config: "Config", log: LogLines) -> Exit | None:
    from tiering.agent.http.server import HttpServer
    from tiering.agent.wiring import build, guard
    from tiering.local_tier.service import StartStopped

    built = build(config, os.environ, log.problem, log.event)
    server = HttpServer(config.settings.agent_http_address, _pages(built), guard(config))
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: built.controls.stop())
        built.agent.remember(server.address)
        server.start()
        if built.tier is not None:
            built.tier.start(lambda: built.controls.is_stopping)
            built.tier.run_in_background(built.controls.stop)
        if built.open():
            log.info(f"created a new archive, {config.settings.archive_url}")
        log.info(f"the agent of {', '.join(config.settings.log_dirs)} runs; http://{server.address}/status")
        given_up = built.agent.run()
    except StartStopped:
        given_up = 0
    finally:
        server.close()
        if built.tier is not None:
            built.tier.stop()
    log.info(f"stopped{f'; {given_up} copies were aborted, and a sweep deletes what they uploaded' if given_up else ''}")
    failure = built.tier.failure if built.tier is not None else None
    if built.agent.hung:  # a thread that hears nothing would keep the process: it is left behind as a kill leaves it
        if failure is not None:
            log.problem(str(failure))
        os._exit(Exit.done if failure is None else exit_code_of(failure))
    if failure is not None:
        raise failure
    return None


def _both(given: Given, config_file: str | None, overrides: tuple[str, ...]) -> Given:
    """What is said in front of the command and behind it: either place will do."""
    file, before = given
    return config_file if is_given("config_file") else file, (*before, *overrides)


@command.command("pause")
@whole_config_options
@click.pass_obj
@reports_errors
def pause(given: Given, config_file: str | None, overrides: tuple[str, ...]) -> Exit | None:
    """Start no new work until `tiering agent resume` or a restart of the agent.

    \b
    Examples:
      tiering agent pause --config tiering.toml
    """
    return _tell(whole_config(*_both(given, config_file, overrides)), "/pause")


@command.command("resume")
@whole_config_options
@click.pass_obj
@reports_errors
def resume(given: Given, config_file: str | None, overrides: tuple[str, ...]) -> Exit | None:
    """Continue after `tiering agent pause`.

    \b
    Examples:
      tiering agent resume --config tiering.toml
    """
    return _tell(whole_config(*_both(given, config_file, overrides)), "/resume")


@command.command("unit")
@whole_config_options
@click.pass_obj
@reports_errors
def unit(given: Given, config_file: str | None, overrides: tuple[str, ...]) -> Exit | None:
    """Print a systemd unit that runs the agent with this configuration; install nothing.

    \b
    Examples:
      tiering agent unit --config /etc/tiering.toml > /etc/systemd/system/tiering-agent.service
    """
    from tiering.agent.unit import unit as unit_of

    file, overrides = _both(given, config_file, overrides)
    config = whole_config(file, overrides)
    args = ["--config", os.path.abspath(file)] if file else []
    for override in overrides:
        args += ["--override", override]
    url = config.settings.archive_url or ""
    folders = [url.removeprefix("file://")] if url and (url.startswith("file://") or "://" not in url) else []
    if config.settings.own_log_dirs:
        folders += config.settings.log_dirs
    if config.settings.agent_state_dir is not None:
        folders.append(config.settings.agent_state_dir)
    command = [sys.executable, "-m", "tiering", "agent", *args]
    click.echo(unit_of(command, config.settings.agent_shutdown_timeout_ms, list(map(os.path.abspath, folders))), nl=False)
    return None


def _pages(built: "Built") -> "Pages":
    from tiering.agent.http.server import Page
    from tiering.agent.pages import pages_of
    from tiering.metrics.exposition import CONTENT_TYPE, exposition
    from tiering.metrics.values import values

    text = exposition(lambda: values(built.agent.view(), built.meter.snapshot()))
    return pages_of(built.agent.view, built.controls, lambda: Page(text(), CONTENT_TYPE))


def _refuse_half(config: "Config") -> None:
    """A configuration without log directories or archive is a usage error."""
    from tiering.agent.configured import checked

    try:
        checked(config)
    except Invalid as e:
        raise click.UsageError(str(e)) from e


def _tell(config: "Config", path: str) -> Exit | None:
    from tiering.agent.configured import addresses, token
    from tiering.agent.http import client as http_client

    error: Unavailable | None = None
    known = token(config)
    for address in addresses(config, os.environ):
        try:
            state = http_client.ask(address, "POST", path, known)["state"]
        except Unavailable as e:
            error = e
        else:
            say(f"tiering: the agent at {address} is {state}")
            return None
    assert error is not None
    raise error
