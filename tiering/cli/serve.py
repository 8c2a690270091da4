"""`tiering serve`: an endpoint of Kafka's protocol that reads both tiers."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from local_log.formats.primitives import INT32_MAX
from tiering.command.completion import files
from tiering.command.config_option import config_file, configured, whole_config
from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.options import (
    Number,
    archive_option,
    cache_dir_option,
    is_given,
    keys_option,
    log_dir_option,
    named,
    options_as,
    own_log_dirs_option,
)
from tiering.command.output import say, warn
from tiering.command.stop_signals import stopped_by_signals
from tiering.endpoint.addresses import host_and_port, is_every_address, is_loopback

if TYPE_CHECKING:
    from tiering.agent.own_dirs import OwnDirs
    from tiering.config.config import Config
    from tiering.endpoint.broker_server import BrokerServer, BrokerServerConfig
    from tiering.endpoint.brokers.live_brokers import Broker
    from tiering.endpoint.request_context import SecurityProtocol
    from tiering.endpoint.settings import Settings

_PATHS = (
    "archive_url", "keys_address", "cache_dir", "log_dir_path", "own_log_dirs", "users_path", "acls_path", "quotas_path",
    "offsets_dir",
)  # fmt: skip
_STOP_S = 20
"""The server takes 10 seconds at most to answer what it was asked and to end; then what is committed is synced."""
_OWN_STOP_S = 60
"""Besides, copies end, and the logs are synced and closed."""
_DEFAULT = "127.0.0.1:9095"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering serve`."""

    archive_url: str | None
    log_dir_path: str | None
    own_log_dirs: tuple[str, ...]
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
@own_log_dirs_option()
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
    With --own-log-dir it is a broker of its own, for clients that write, too; it does not replicate. With --archive it copies
    closed segments there, as tiering agent does, and reads what has left the directory.
    SIGTERM and SIGINT answer what has been asked, and end the command.

    \b
    Examples:
      tiering serve --archive s3://bucket/kafka --listen 127.0.0.1:9095
      tiering serve --archive s3://bucket/kafka --log-dir /var/lib/kafka
      tiering serve --own-log-dir data --listen 127.0.0.1:9092 -c num.partitions=4
      tiering serve --archive archive --listen SASL_SSL://10.0.0.7:9095 --users users.json -c ssl.keystore.location=tls.pem
      tiering serve --archive s3://bucket/kafka --listen 10.0.0.7:9095 --insecure --broker-id 7 --register
    """
    own = _own(options)
    _refuse_contradictions(options, own)
    config = _config(options, own)
    if options.print_unit:
        click.echo(_unit(options, own), nl=False)
        return
    if own is None:
        with ExitStack() as signals:
            hung = _serve(config, signals)
        _end(is_hung=hung)
    else:
        _serve_own(config, own)


def _own(options: Options) -> "Config | None":
    """The configuration of log directories of our own, with what -c and the options say; None if there are none."""
    from tiering.endpoint.settings import MAX_CONNECTIONS, NODE_ID

    config = configured()
    if not options.own_log_dirs and not (config is not None and config.settings.own_log_dirs):
        return None
    given = {
        "log.dirs": ",".join(options.own_log_dirs) or None,
        "own.log.dirs": "true",
        "archive.url": options.archive_url,
        "archive.keys": options.keys_address,
        "archive.cache.dir": options.cache_dir,
        MAX_CONNECTIONS.name: options.max_connections,
        NODE_ID.name: options.broker_id,
    }
    named = {text.partition("=")[0].strip(): text for text in options.assignments}  # the last of a name counts
    for name in ("log.dirs", "archive.url"):
        if name in named and given[name] is not None:
            raise click.UsageError(f"{name} is given besides, as {given[name]}: leave it out of -c")
    named |= {name: f"{name}={value}" for name, value in given.items() if value is not None}
    return whole_config(config_file(), tuple(named.values()), "-c")


def _refuse_contradictions(options: Options, own: "Config | None") -> None:
    if own is not None:
        _refuse_beside_own(options)
    elif options.archive_url is None and options.log_dir_path is None:
        raise click.UsageError("give --archive, --log-dir or both, or --own-log-dir")
    elif "," in (options.log_dir_path or "") and not is_given("log_dir_path"):
        raise click.UsageError(f"log.dirs is {options.log_dir_path}, and one of them can be served: choose it with --log-dir")
    if options.register and options.brokers:
        raise click.UsageError("give --register or --broker, not both: brokers that register find each other")
    if (options.register or options.brokers) and (options.archive_url is None or options.log_dir_path is not None):
        raise click.UsageError("brokers share the partitions of an archive: give --archive, and no --log-dir")
    if (options.register or options.brokers) and options.offsets_dir is not None:
        raise click.UsageError("give --offsets-dir to a broker that is alone: others could not go on with the offsets in it")


def _refuse_beside_own(options: Options) -> None:
    if options.own_log_dirs and options.log_dir_path is not None and is_given("log_dir_path"):
        raise click.UsageError("give --own-log-dir or --log-dir, not both: a broker has the one and this process the other")
    if options.offsets_dir is not None:
        raise click.UsageError("with --own-log-dir, offsets are kept in its topic __consumer_offsets: leave --offsets-dir out")
    if options.register or options.brokers:
        raise click.UsageError("a log directory of its own belongs to one broker: leave --register and --broker out")


def _config(options: Options, own: "Config | None") -> "BrokerServerConfig":
    from tiering.endpoint.settings import Settings

    settings = _settings(options) if own is None else Settings(_given_by(own))
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
        log_dir_path=options.log_dir_path if own is None else None,
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


def _unit(options: Options, own: "Config | None") -> str:
    from tiering.command.given_options import given_options
    from tiering.command.systemd_unit import systemd_unit

    given = [one for one in given_options(_PATHS) if one != "--print-unit"]
    command = [sys.executable, "-m", "tiering", "serve", *given]
    is_archiving = options.register or own is not None
    folders = [options.cache_dir, options.offsets_dir, _folder_of(options.archive_url) if is_archiving else None]
    folders += () if own is None else (*own.settings.log_dirs, own.settings.agent_state_dir)
    if options.acls_path is not None:  # whom they allow it may change these files over the protocol
        changed = (options.acls_path, options.users_path, options.quotas_path)
        folders += dict.fromkeys(os.path.dirname(os.path.abspath(file)) for file in changed if file is not None)
    writable = [os.path.abspath(folder) for folder in folders if folder]
    stop_s = _STOP_S if own is None else _OWN_STOP_S + own.settings.agent_shutdown_timeout_ms // 1000
    return systemd_unit("tiering.endpoint", "kafka-tiering-endpoint.service", command, stop_s, writable)


def _folder_of(url: str | None) -> str | None:
    """The folder of an archive that is one."""
    path = (url or "").removeprefix("file://")
    return None if "://" in path else path


def _given_by(config: "Config") -> dict[str, Any]:
    from tiering.endpoint.settings import SETTINGS

    names = SETTINGS.keys() & config.places.keys()
    return {name: getattr(config.settings, name.replace(".", "_")) for name in names}


def _settings(options: Options) -> "Settings":
    from tiering.endpoint.settings import MAX_CONNECTIONS, NODE_ID, read_settings

    config = configured()
    given = {} if config is None else _given_by(config)
    also = {MAX_CONNECTIONS.name: options.max_connections, NODE_ID.name: options.broker_id}
    named = (f"{name}={value}" for name, value in also.items() if value is not None)
    return read_settings((*options.assignments, *named), given)


def _serve_own(config: "BrokerServerConfig", own: "Config") -> None:
    from tiering.agent.own_dirs import own_dirs

    is_alone = own.settings.archive_url is None
    kept = "a single node, without an archive" if is_alone else f"a single node, archived in {own.settings.archive_url}"
    with ExitStack() as signals, own_dirs(own, os.environ, warn) as dirs:
        say(f"tiering: the log of {', '.join(own.settings.log_dirs)}: {kept}; nothing is replicated")
        hung = _serve(config, signals, (dirs, own))
    if dirs.failure is not None:
        raise dirs.failure
    _end(is_hung=hung or dirs.is_hung)


def _serve(config: "BrokerServerConfig", signals: ExitStack, own: "tuple[OwnDirs, Config] | None" = None) -> bool:
    """Whether threads wait for something yet. `signals` lasts until all is closed."""
    from tiering.endpoint.broker_server import broker_server

    with broker_server(config, warn, None if own is None else own[0].tier) as server:
        host, port = server.address
        with _pages(server) if own is None else _own_pages(server, *own):
            if own is not None:
                own[0].run_in_background(server.stop)
            signals.enter_context(stopped_by_signals(server.stop))
            say(f"tiering: {server.topics} topics at {host}:{port}")
            server.serve()
    return bool(server.hung)


def _end(*, is_hung: bool) -> None:
    say("tiering: stopped")
    if is_hung:  # by a store that does not answer: the process does not wait for them
        os._exit(Exit.done)


@contextmanager
def _pages(server: "BrokerServer") -> Iterator[None]:
    from tiering.endpoint.settings import HTTP_ADDRESS

    settings = server.context.settings
    if settings[HTTP_ADDRESS] is None:
        yield
        return
    from tiering.metrics.endpoint_overview import EndpointOverview
    from tiering.metrics.endpoint_pages import serving_pages  # with Prometheus' client, which takes a moment to load
    from tiering.metrics.endpoint_values import EndpointView

    with serving_pages(settings, lambda: EndpointView.of(server), lambda: EndpointOverview.of(server).row()) as address:
        say(f"tiering: metrics at http://{address}/metrics")
        yield


@contextmanager
def _own_pages(server: "BrokerServer", dirs: "OwnDirs", own: "Config") -> Iterator[None]:
    from tiering.endpoint.settings import HTTP_ADDRESS

    if server.context.settings[HTTP_ADDRESS] is None and "agent.http.address" not in own.places:
        yield
        return
    from tiering.metrics.own_pages import serving_own_pages  # with Prometheus' client, which takes a moment to load

    with serving_own_pages(server, dirs, own) as addresses:
        say(f"tiering: metrics at {' and '.join(f'http://{address}/metrics' for address in addresses)}")
        yield


def _listener(text: str) -> tuple["SecurityProtocol", str, int]:
    """The security protocol, host and port of --listen."""
    from tiering.endpoint.request_context import SecurityProtocol

    protocol, _, address = text.rpartition("://")
    protocol = protocol.upper() or "PLAINTEXT"
    if protocol not in set(SecurityProtocol):
        raise click.BadParameter(f"{protocol!r} is none of {', '.join(SecurityProtocol)}", param_hint="--listen")
    return SecurityProtocol(protocol), *_address(address, "--listen")


def _refuse_what_is_open(protocol: "SecurityProtocol", host: str, settings: "Settings") -> None:
    from tiering.endpoint.authentication.opening import exposure

    reason = exposure(protocol, settings)
    if reason:
        raise click.UsageError(f"{host} can be reached from other hosts, and {reason}; --insecure allows it")


def _address(text: str, option: str) -> tuple[str, int]:
    try:
        return host_and_port(text)
    except ValueError as e:
        raise click.BadParameter(f"{text!r} is not HOST:PORT, as in {_DEFAULT}", param_hint=option) from e
