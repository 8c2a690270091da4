"""kcat on our endpoint, by the commands of the page and otherwise: it prints every record of both tiers, as the log has them."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import quick
from asked_endpoint import Endpoint
from certificates import Authority
from golden_logs import live, partitions
from pages import pages
from served_endpoint import served
from tiered_worlds import World
from users_file import PASSWORDS, sasl_listener, user_file

from local_log.os_disk import OsDisk
from remote.clock import SystemClock
from tiering.endpoint.authentication.listener import Listener
from tiering.endpoint.authentication.tls import Tls, TlsConfig
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.request_context import SecurityProtocol
from tiering.read.tiered_log import Isolation

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not here; it comes with Debian's package kcat"),
]

AT_ONCE = ("-X", "fetch.wait.max.ms=10")
SHOWN = r"%o %T %K %S %k%s%h\n"
OF_THE_PAGE = re.compile(r"kcat -b 127\.0\.0\.1:9095 ((?:'[^']*'|\S| (?! ))+)")
"""What stands behind two spaces says what a command does."""


def endpoint_of(world: World) -> Endpoint:
    at_once = GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0)
    return Endpoint(world.folders["some archived dropped"], world.store, clock=SystemClock(), group_config=at_once)


@pytest.fixture(scope="module")
def address(world: World) -> Iterator[str]:
    endpoint = endpoint_of(world)
    with served(endpoint) as (host, port):
        yield f"{host}:{port}"
    assert {text for text in endpoint.said if not text.startswith("group readers: commits of offsets are refused")} == set()


def kcat(address: str, *options: object) -> bytes:
    """What it prints; it has to end well."""
    quick.starts_a_server()
    command = ["kcat", "-b", address, *AT_ONCE, *map(str, options)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def printed(world: World, partition: str, isolation: Isolation = Isolation.read_committed, start: int = 0) -> bytes:
    """The records of a log from an offset on, as `SHOWN` has them."""
    return b"".join(line(record) for record in records(world, partition, isolation) if record["offset"] >= start)


def records(world: World, partition: str, isolation: Isolation = Isolation.read_committed) -> list[dict]:
    """All records of a log."""
    log = world.log("local alone", partition)
    return [record for batch in log.read(log.log_start_offset, isolation=isolation) for record in batch.to_pylist()]


def line(record: dict) -> bytes:
    key, value = record["key"], record["value"]
    sizes = [-1 if one is None else len(one) for one in (key, value)]
    headers = [b"%s=%s" % (h["key"], b"NULL" if h["value"] is None else h["value"]) for h in record["headers"]]
    start = b"%d %d %d %d " % (record["offset"], record["timestamp"], *sizes)
    return start + (key or b"") + (value or b"") + b",".join(headers) + b"\n"


@pytest.mark.parametrize("isolation", list(Isolation))
def test_kcat_prints_every_record_of_every_topic(address: str, world: World, isolation: Isolation) -> None:
    for partition in partitions():
        read = ["-C", "-t", partition[:-2], "-o", "beginning", "-e", "-q", "-X", f"isolation.level={isolation}", "-f", SHOWN]
        assert kcat(address, *read) == printed(world, partition, isolation), partition


def test_kcat_prints_what_is_from_an_offset_or_a_time_on(address: str, world: World) -> None:
    read = ["-C", "-t", "g-txn", "-e", "-q", "-f", SHOWN]
    assert kcat(address, *read, "-o", 100) == printed(world, "g-txn-0", start=100)
    times = [(time, start) for time, start, *_ in live("g-txn-0")["offset_for_timestamp"] if start > 0]  # by the broker
    for time, start in times[:2]:
        assert kcat(address, *read, "-o", f"s@{time}") == printed(world, "g-txn-0", start=start)
        assert kcat(address, "-Q", "-t", f"g-txn:0:{time}") == b"g-txn [0] offset %d\n" % start


def test_kcat_reads_in_a_group_from_the_first_offset_on(address: str, world: World) -> None:
    group = ["-G", "readers", "-e", "-q", "-X", "auto.offset.reset=earliest", "-X", "enable.auto.commit=false"]
    assert kcat(address, *group, "-f", SHOWN, "g-epochs") == printed(world, "g-epochs-0")


def test_kcat_authenticates_over_tls(world: World, tmp_path: Path) -> None:
    authority, endpoint = Authority(tmp_path), endpoint_of(world)
    own = authority.signed("CN=localhost", "server.pem")
    of = sasl_listener(user_file(tmp_path), SecurityProtocol.SASL_SSL)
    tls = Tls(TlsConfig(own, own), OsDisk(), endpoint.said.append)
    who = ["-X", "security.protocol=SASL_SSL", "-X", f"ssl.ca.location={authority.file}", "-X", "sasl.mechanism=PLAIN"]
    who += ["-X", "sasl.username=alice", "-X", f"sasl.password={PASSWORDS['alice']}"]
    with served(endpoint, Listener(of.protocol, of.sasl, tls)) as (host, port):
        read = ["-C", "-t", "g-txn", "-o", "beginning", "-e", "-q", "-f", SHOWN]
        assert kcat(f"{host}:{port}", *who, *read) == printed(world, "g-txn-0")


def test_the_commands_of_the_page_are_so(address: str, world: World) -> None:
    listed, whole, since, ten, group = (shlex.split(options) for options in OF_THE_PAGE.findall(pages()["serve"]))
    assert b'  topic "g-txn" with 1 partitions:\n    partition 0, leader 1,' in kcat(address, *listed)
    of_txn = records(world, "g-txn-0")
    assert kcat(address, *whole) == values(of_txn)
    later = [b"%d %d %s\n" % (r["offset"], r["timestamp"], r["key"] or b"") for r in of_txn if r["offset"] >= 102]
    assert kcat(address, *since) == b"".join(later)
    assert kcat(address, *ten) == values([record for record in of_txn if record["offset"] >= 2000][:10])
    assert kcat(address, "-e", *group) == values(records(world, "g-epochs-0"))


def values(of: list[dict]) -> bytes:
    """As kcat prints them without a format."""
    return b"".join((record["value"] or b"") + b"\n" for record in of)
