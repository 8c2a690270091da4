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
from tiering.endpoint.protocol.api_keys import DESCRIBE_TRANSACTIONS
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
        file.write(f"{_transactions(server.address, tuple(transactional_ids))}\n")


def _transactions(address: str, transactional_ids: tuple[str, ...]) -> object:
    wire = Wire(address)
    try:
        return wire.ask(DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids))
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
