"""What is known of a client that does not come back from a call: stacks, connections, transactions, and librdkafka's log."""

import faulthandler
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from asked_by_wire import Wire

from histories.nemesis import STACKS, Server
from tiering.endpoint.protocol.api_keys import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, DESCRIBE_TRANSACTIONS, Api
from tiering.endpoint.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.describe_transactions import DescribeTransactionsRequest

CONNECTIONS = Path("/proc/net/tcp")


def where(thread: threading.Thread) -> str:
    """Where a thread is."""
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame, 3)) if frame else "nowhere"


def keep_evidence(server: Server, transactional_ids: Iterable[str]) -> None:
    """Writes what both processes are doing now into `stuck` in the server's folder; the server's stacks are in what it says."""
    if server.process is not None and server.process.poll() is None:
        server.process.send_signal(STACKS)
    port = f":{int(server.address.rpartition(':')[2]):04X} "
    with (server.folder / "stuck").open("w") as file:
        file.writelines(f"{one.name} is {one.ident or 0:#x}\n" for one in threading.enumerate())
        file.flush()
        faulthandler.dump_traceback(file, all_threads=True)
        file.writelines(f"{line}\n" for line in CONNECTIONS.read_text().splitlines() if port in line or "rx_queue" in line)
        file.write(f"{_told(server.address, DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(tuple(transactional_ids)))}\n")


def keep_groups(server: Server, groups: tuple[str, ...]) -> None:
    """Writes the members of groups, and what they have, into `groups` in the server's folder, by both protocols."""
    asked = ((DESCRIBE_GROUPS, DescribeGroupsRequest(groups)), (CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest(groups)))
    told = (_told(server.address, api, message) for api, message in asked)
    (server.folder / "groups").write_text("".join(f"{one}\n" for of in told for one in getattr(of, "groups", (of,))))


def _told(address: str, api: Api, message: object) -> object:
    wire = Wire(address)
    try:
        return wire.ask(api, 0, message)
    except OSError as e:
        return e
    finally:
        wire.close()


@contextmanager
def librdkafka_log(file: Path) -> Iterator[None]:
    """What C code says to standard error goes to `file` meanwhile; what Python says goes where it went."""
    before, own = sys.stderr, os.dup(2)
    with file.open("ab") as opened, os.fdopen(os.dup(2), "w", buffering=1) as said:
        os.dup2(opened.fileno(), 2)
        sys.stderr = said
        try:
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)
            sys.stderr = before
