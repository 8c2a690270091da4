"""`tiering serve`: an endpoint of Kafka's protocol that reads both tiers."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from local_log.formats.primitives import INT32_MAX
from tiering.command.completion import files
from tiering.command.config_option import configured
from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.options import (
    Number,
    archive_option,
    cache_dir_option,
    keys_option,
    log_dir_option,
    named,
    options_as,
)
from tiering.command.output import say, warn
from tiering.endpoint.addresses import host_and_port, is_every_address, is_loopback
from tiering.endpoint.settings import HTTP_ADDRESS, MAX_CONNECTIONS, NODE_ID, SETTINGS, Settings, read_settings

if TYPE_CHECKING:
    from tiering.endpoint.broker_server import BrokerServer, BrokerServerConfig
    from tiering.endpoint.brokers.live_brokers import Broker
    from tiering.endpoint.request_context import SecurityProtocol

_PATHS = (
    "archive_url", "keys_address", "cache_dir", "log_dir_path", "users_path", "acls_path", "quotas_path", "offsets_dir"
)  # fmt: skip
_STOP_S = 20
"""The server takes 10 seconds at most to answer what it was asked and to end; then what is committed is synced."""
_DEFAULT = "127.0.0.1:9095"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering serve`."""

    archive_url: str | None
    log_dir_path: str | None
    keys_address: str | None
    cache_dir: str | None
    listen: str
    users_path: str | None
    acls_path: str | None
    quotas_path: str | None
    assignments: tuple[str, ...]
    advertise: str | None
    insecure: bool
    max_connections: int | None
    offsets_dir: str | None
    broker_id: int | None
    register: bool
    brokers: tuple[str, ...]
    print_unit: bool


@click.command("serve")
@archive_option()
@log_dir_option()
@keys_option()
@cache_dir_option()
@click.option(
    "--listen",
    default=_DEFAULT,
    show_default=True,
    metavar="[PROTOCOL://]HOST:PORT",
    help="Where to listen, with Kafka's security protocol, such as SASL_SSL://; port 0 takes a free one.",
)
@click.option("--advertise", metavar="HOST:PORT", help="The address that clients are told to use. Default: that of --listen.")
@click.option(
    "--insecure", is_flag=True, help="Listen on an address that other hosts reach, although everybody there may read all."
)
@click.option(
    "--users",
    "users_path",
    callback=named,
    shell_complete=files,
    metavar="FILE",
    help="The users of SASL, a file that tiering users writes; it is read again when it changes.",
)
@click.option(
    "--acls",
    "acls_path",
    callback=named,
    shell_complete=files,
    metavar="FILE",
    help="Who may do what: access control lists in JSON, read again when they change. Default: everybody may read all.",
)
@click.option(
    "--quotas",
    "quotas_path",
    callback=named,
    shell_complete=files,
    metavar="FILE",
    help="How many bytes a second clients may fetch: quotas in JSON, read again when they change. Default: no limit.",
)
@click.option(
    "-c",
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A broker setting with Kafka's name, such as max.connections=500; may be given several times.",
)
@click.option("--max-connections", type=Number(0, INT32_MAX), metavar="N", help="The same as -c max.connections=N.")
@click.option("--offsets-dir", metavar="DIR", help="Keep the offsets that consumers commit there. Default: refuse commits.")
@click.option("--broker-id", type=Number(0, INT32_MAX), metavar="ID", help="The same as -c node.id=ID.")
@click.option(
    "--register", is_flag=True, help="Share the partitions with all brokers that register in the archive, which this writes to."
)
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    metavar="ID@HOST:PORT",
    help="Share the partitions with this broker while it accepts connections; may be given several times.",
)
@click.option("--print-unit", is_flag=True, help="Print a systemd unit that runs this command, and serve nothing.")
@options_as(Options)
@reports_errors
def command(options: Options) -> None:
    """Serve topics to any Kafka client, read-only, from the archive, a log directory or both.

    A topic that is in both is one log. Producers are refused, and nothing is written but what --offsets-dir and --register
    say, and what administrators change of the files of --users, --acls and --quotas.
    SIGTERM and SIGINT answer what has been asked, and end the command.

    \b
    Examples:
      tiering serve --archive s3://bucket/kafka --listen 127.0.0.1:9095
      tiering serve --archive s3://bucket/kafka --log-dir /var/lib/kafka
      tiering serve --archive archive --listen SASL_SSL://10.0.0.7:9095 --users users.json -c ssl.keystore.location=tls.pem
      tiering serve --archive s3://bucket/kafka --listen 10.0.0.7:9095 --insecure --broker-id 7 --register
    """
    _refuse_contradictions(options)
    config = _config(options)
    if options.print_unit:
        click.echo(_unit(options), nl=False)
        return
    _serve(config)


def _refuse_contradictions(options: Options) -> None:
    if options.archive_url is None and options.log_dir_path is None:
        raise click.UsageError("give --archive, --log-dir or both")
    if options.register and options.brokers:
        raise click.UsageError("give --register or --broker, not both: brokers that register find each other")
    if (options.register or options.brokers) and (options.archive_url is None or options.log_dir_path is not None):
        raise click.UsageError("brokers share the partitions of an archive: give --archive, and no --log-dir")
    if (options.register or options.brokers) and options.offsets_dir is not None:
        raise click.UsageError("give --offsets-dir to a broker that is alone: others could not go on with the offsets in it")


def _config(options: Options) -> "BrokerServerConfig":
    settings = _settings(options)
    protocol, host, port = _listener(options.listen)
    if not (options.insecure or is_loopback(host)):
        _refuse_what_is_open(protocol, host, settings)
    advertised = _address(options.advertise, "--advertise") if options.advertise is not None else None
    if advertised is None and is_every_address(host):
        raise click.UsageError(f"clients cannot connect to {host}: say with --advertise which address they are to use")
    from tiering.endpoint.broker_server import BrokerServerConfig  # with all messages of the protocol, it takes a moment to load

    return BrokerServerConfig(
        settings=settings,
        protocol=protocol,
        host=host,
        port=port,
        advertised=advertised,
        archive_url=options.archive_url,
        log_dir_path=options.log_dir_path,
        keys_address=options.keys_address,
        cache_dir=options.cache_dir,
        offsets_dir=options.offsets_dir,
        users_path=options.users_path,
        acls_path=options.acls_path,
        quotas_path=options.quotas_path,
        register=options.register,
        listed=_listed(options.brokers),
    )


def _listed(texts: tuple[str, ...]) -> tuple["Broker", ...]:
    from tiering.endpoint.brokers.opening import read_brokers

    try:
        return read_brokers(texts)
    except ValueError as e:
        raise click.BadParameter(str(e), param_hint="--broker") from e


def _unit(options: Options) -> str:
    from tiering.command.given_options import given_options
    from tiering.command.systemd_unit import systemd_unit

    given = [one for one in given_options(_PATHS) if one != "--print-unit"]
    command = [sys.executable, "-m", "tiering", "serve", *given]
    folders = [options.cache_dir, options.offsets_dir, _folder_of(options.archive_url) if options.register else None]
    if options.acls_path is not None:  # whom they allow it may change these files over the protocol
        changed = (options.acls_path, options.users_path, options.quotas_path)
        folders += dict.fromkeys(os.path.dirname(os.path.abspath(file)) for file in changed if file is not None)
    writable = [os.path.abspath(folder) for folder in folders if folder]
    return systemd_unit("tiering.endpoint", "kafka-tiering-endpoint.service", command, _STOP_S, writable)


def _folder_of(url: str | None) -> str | None:
    """The folder of an archive that is one."""
    path = (url or "").removeprefix("file://")
    return None if "://" in path else path


def _settings(options: Options) -> Settings:
    config = configured()
    names = () if config is None else SETTINGS.keys() & config.places.keys()
    given = {name: getattr(config.settings, name.replace(".", "_")) for name in names} if config is not None else {}
    also = {MAX_CONNECTIONS.name: options.max_connections, NODE_ID.name: options.broker_id}
    named = (f"{name}={value}" for name, value in also.items() if value is not None)
    return read_settings((*options.assignments, *named), given)


def _serve(config: "BrokerServerConfig") -> None:
    from tiering.endpoint.broker_server import broker_server

    with broker_server(config, warn) as server:
        host, port = server.address
        with _pages(server):
            say(f"tiering: {server.topics} topics at {host}:{port}")
            server.serve()
    say("tiering: stopped")
    if server.hung:  # by a store that does not answer: the process does not wait for them
        os._exit(Exit.done)


@contextmanager
def _pages(server: "BrokerServer") -> Iterator[None]:
    settings = server.context.settings
    if settings[HTTP_ADDRESS] is None:
        yield
        return
    from tiering.metrics.endpoint_pages import serving_pages  # with Prometheus' client, which takes a moment to load
    from tiering.metrics.endpoint_values import EndpointView

    with serving_pages(settings, lambda: EndpointView.of(server)) as address:
        say(f"tiering: metrics at http://{address}/metrics")
        yield


def _listener(text: str) -> tuple["SecurityProtocol", str, int]:
    """The security protocol, host and port of --listen."""
    from tiering.endpoint.request_context import SecurityProtocol

    protocol, _, address = text.rpartition("://")
    protocol = protocol.upper() or "PLAINTEXT"
    if protocol not in set(SecurityProtocol):
        raise click.BadParameter(f"{protocol!r} is none of {', '.join(SecurityProtocol)}", param_hint="--listen")
    return SecurityProtocol(protocol), *_address(address, "--listen")


def _refuse_what_is_open(protocol: "SecurityProtocol", host: str, settings: Settings) -> None:
    from tiering.endpoint.authentication.opening import exposure

    reason = exposure(protocol, settings)
    if reason:
        raise click.UsageError(f"{host} can be reached from other hosts, and {reason}; --insecure allows it")


def _address(text: str, option: str) -> tuple[str, int]:
    try:
        return host_and_port(text)
    except ValueError as e:
        raise click.BadParameter(f"{text!r} is not HOST:PORT, as in {_DEFAULT}", param_hint=option) from e
