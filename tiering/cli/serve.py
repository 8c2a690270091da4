"""`tiering serve`: an endpoint of Kafka's protocol that reads both tiers."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from local_log.errors import Invalid
from local_log.formats.primitives import INT32_MAX
from remote.read.read_ahead import AheadBytes
from remote.store.instrumented import Meter
from tiering.command.completion import files
from tiering.command.config_option import configured
from tiering.command.exit_codes import reports_errors
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
from tiering.endpoint.settings import (
    CONNECTIONS_MAX_IDLE,
    FAILED_AUTHENTICATION_DELAY,
    FETCH_SESSION_SLOTS,
    HTTP_ADDRESS,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    NODE_ID,
    NUM_IO_THREADS,
    QUEUED_MAX_REQUEST_BYTES,
    SASL_RECEIVE_SIZE,
    SETTINGS,
    SOCKET_REQUEST_MAX_BYTES,
    Settings,
    read_settings,
)
from tiering.machine import CLOCK, IDS, allow_open_files, collect_seldom, open_store
from tiering.wiring import CACHE_BYTES_MAX, Tiers, open_reading, open_tiers, read_ahead_pool

if TYPE_CHECKING:
    from tiering.endpoint.brokers.lifecycle import BrokerLifecycle
    from tiering.endpoint.brokers.live_brokers import Broker
    from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
    from tiering.endpoint.coordinator.offsets_log import OffsetsLog
    from tiering.endpoint.network.config import SocketServerConfig
    from tiering.endpoint.reports import Reports
    from tiering.endpoint.request_context import SecurityProtocol
    from tiering.metrics.endpoint_values import EndpointView

THREADS = 4
AHEAD_BYTES_MAX = 128 << 20
"""What is requested of a store before a client asks for it, for all clients together."""
REACHED_S_MAX = 1.0
_PATHS = ("archive_url", "keys_address", "cache_dir", "log_dir_path", "users_path", "acls_path", "offsets_dir")
_STOP_S = 20
"""The server takes 10 seconds at most to answer what it was asked, and then the rest has its time."""
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

    A topic that is in both is one log. Producers are refused, and nothing is written but what --offsets-dir and --register say.
    SIGTERM and SIGINT answer what has been asked, and end the command.

    \b
    Examples:
      tiering serve --archive s3://bucket/kafka --listen 127.0.0.1:9095
      tiering serve --archive s3://bucket/kafka --log-dir /var/lib/kafka
      tiering serve --archive archive --listen SASL_SSL://10.0.0.7:9095 --users users.json -c ssl.keystore.location=tls.pem
      tiering serve --archive s3://bucket/kafka --listen 10.0.0.7:9095 --insecure --broker-id 7 --register
    """
    if options.archive_url is None and options.log_dir_path is None:
        raise click.UsageError("give --archive, --log-dir or both")
    settings = _settings(options)
    protocol, host, port = _listener(options.listen)
    if not (options.insecure or is_loopback(host)):
        _refuse_what_is_open(protocol, host, settings)
    advertised = _address(options.advertise, "--advertise") if options.advertise is not None else None
    if advertised is None and is_every_address(host):
        raise click.UsageError(f"clients cannot connect to {host}: say with --advertise which address they are to use")
    if options.register and options.brokers:
        raise click.UsageError("give --register or --broker, not both: brokers that register find each other")
    if (options.register or options.brokers) and (options.archive_url is None or options.log_dir_path is not None):
        raise click.UsageError("brokers share the partitions of an archive: give --archive, and no --log-dir")
    if (options.register or options.brokers) and options.offsets_dir is not None:
        raise click.UsageError("give --offsets-dir to a broker that is alone: others could not go on with the offsets in it")
    if options.print_unit:
        click.echo(_unit(options), nl=False)
        return
    _serve(options, settings, protocol, (host, port), advertised)


def _unit(options: Options) -> str:
    from tiering.command.given_options import given_options
    from tiering.command.systemd_unit import systemd_unit

    given = [one for one in given_options(_PATHS) if one != "--print-unit"]
    command = [sys.executable, "-m", "tiering", "serve", *given]
    folders = [options.cache_dir, options.offsets_dir, _folder_of(options.archive_url) if options.register else None]
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


def _serve(
    options: Options,
    settings: Settings,
    protocol: "SecurityProtocol",
    at: tuple[str, int],
    advertised: tuple[str, int] | None,
) -> None:
    from tiering.endpoint.apis.context import CLUSTER_ID, Context  # with all its messages, it takes a moment to load
    from tiering.endpoint.authentication.opening import open_listener
    from tiering.endpoint.authorization.opening import open_acls
    from tiering.endpoint.brokers.live_brokers import Broker
    from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
    from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
    from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
    from tiering.endpoint.fetch_sessions.manager import FetchManager
    from tiering.endpoint.hosted_logs import HostedLogs
    from tiering.endpoint.quotas.opening import open_quotas
    from tiering.endpoint.reads import Reads
    from tiering.endpoint.reports import Reports
    from tiering.endpoint.server import Server
    from tiering.endpoint.transport import listen

    meter, group_config = Meter(), GroupCoordinatorConfig.of(settings)
    allow_open_files()
    reports = Reports(lambda text: say(f"tiering: {text}"), CLOCK)
    of = open_listener(protocol, settings, options.users_path, reports)
    rules = (open_acls(options.acls_path, settings, reports), *open_quotas(options.quotas_path, reports))
    with (
        read_ahead_pool(THREADS) as ahead,
        _offsets_log(options, group_config, reports) as offsets,
        ThreadPoolExecutor(settings[NUM_IO_THREADS], thread_name_prefix="request") as pool,
        ThreadPoolExecutor(1, thread_name_prefix="topics") as background,
    ):
        logs, reads = HostedLogs(_tiers(options, ahead, meter), CLOCK, background=background, report=reports), Reads()
        count = len(logs.names())
        try:
            listener = listen(*at)
        except OSError as e:
            raise Invalid(f"cannot listen on {options.listen}: {e}; choose another address with --listen") from e
        bound_host, bound_port = listener.getsockname()[:2]
        host, port = advertised or (at[0], bound_port)
        sessions = FetchManager(FetchSessionCache(IDS, settings[FETCH_SESSION_SLOTS]))
        groups = GroupCoordinator(group_config, offsets, CLOCK, IDS, reports)
        groups.load()
        lifecycle = _lifecycle(options, Broker(settings[NODE_ID], host, port), reports)
        cluster = lifecycle.start(CLOCK.sleep)
        cluster_id = logs.tiers.cluster_id or CLUSTER_ID
        context = Context(logs, reads, sessions, CLOCK, cluster, reports, groups, settings, cluster_id, *rules)
        server, started_ms = Server(context, _network(settings), pool, reports, of, lifecycle.stop), CLOCK.now_ms()

        def view() -> "EndpointView":
            from tiering.metrics.endpoint_values import EndpointView

            return EndpointView(context.metrics, sessions.cache, server.status, server.config, started_ms, meter.snapshot())

        with _pages(settings, view):
            say(f"tiering: {count} topics at {bound_host}:{bound_port}")
            collect_seldom()
            try:
                asyncio.run(server.serve(listener))
            finally:
                logs.is_closed = True
                reads.close()
    say("tiering: stopped")


@contextmanager
def _pages(settings: Settings, view: "Callable[[], EndpointView]") -> Iterator[None]:
    if settings[HTTP_ADDRESS] is None:
        yield
        return
    from tiering.metrics.endpoint_pages import serving_pages  # with Prometheus' client, which takes a moment to load

    with serving_pages(settings, view) as address:
        say(f"tiering: metrics at http://{address}/metrics")
        yield


def _network(settings: Settings) -> "SocketServerConfig":
    from tiering.endpoint.network.config import SocketServerConfig

    return SocketServerConfig(
        request_bytes_max=settings[SOCKET_REQUEST_MAX_BYTES],
        queued_bytes_max=settings[QUEUED_MAX_REQUEST_BYTES],
        request_threads=settings[NUM_IO_THREADS],
        connections_max=settings[MAX_CONNECTIONS],
        connections_per_ip_max=settings[MAX_CONNECTIONS_PER_IP],
        connections_per_ip_overrides=settings[MAX_CONNECTIONS_PER_IP_OVERRIDES],
        idle_ms_max=settings[CONNECTIONS_MAX_IDLE],
        unauthenticated_bytes_max=settings[SASL_RECEIVE_SIZE],
        failed_authentication_delay_ms=settings[FAILED_AUTHENTICATION_DELAY],
    )


@contextmanager
def _offsets_log(options: Options, config: "GroupCoordinatorConfig", report: "Reports") -> "Iterator[OffsetsLog | None]":
    if options.offsets_dir is None:
        yield None
        return
    from tiering.endpoint.coordinator.opening import offsets_topic  # the engine that writes is loaded only if it is needed

    with offsets_topic(options.offsets_dir, config, report) as topic:
        yield topic


def _lifecycle(options: Options, me: "Broker", report: Callable[[str], object]) -> "BrokerLifecycle":
    from tiering.endpoint.brokers.lifecycle import BrokerLifecycle
    from tiering.endpoint.brokers.listed_brokers import ListedBrokers
    from tiering.endpoint.brokers.live_brokers import Broker
    from tiering.endpoint.brokers.registered_brokers import RegisteredBrokers

    if options.register:
        assert options.archive_url is not None
        return BrokerLifecycle(RegisteredBrokers(open_store(options.archive_url), me, IDS.new_id(), report), report)
    others = []
    for text in options.brokers:
        node_id, _, address = text.partition("@")
        if not (node_id.isascii() and node_id.isdigit()):
            raise click.BadParameter(f"{text!r} is not ID@HOST:PORT", param_hint="--broker")
        broker = Broker(int(node_id), *_address(address, "--broker"))
        if broker.node_id != me.node_id:
            others.append(broker)
    if len({one.node_id for one in others}) < len(others):
        raise click.BadParameter("two brokers have the same id", param_hint="--broker")
    return BrokerLifecycle(ListedBrokers(me, others, _is_reached), report)


def _is_reached(broker: "Broker") -> bool:
    try:
        socket.create_connection((broker.host, broker.port), REACHED_S_MAX).close()
    except OSError:
        return False
    return True


def _tiers(options: Options, ahead: ThreadPoolExecutor, meter: Meter) -> Tiers:
    return open_tiers(
        options.log_dir_path,
        options.archive_url,
        open_reading(options.cache_dir, CACHE_BYTES_MAX, ahead, options.keys_address, AheadBytes(AHEAD_BYTES_MAX)),
        warn=warn,
        keys_address=options.keys_address,
        cache_dir=options.cache_dir,
        meter=meter,
    )


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
