"""An endpoint on a port of this machine, for as long as a block lasts."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from asked_endpoint import Endpoint

from tiering.endpoint.authentication.listener import PLAINTEXT, Listener
from tiering.endpoint.broker_server import OWN_THREADS
from tiering.endpoint.brokers.live_brokers import Broker, alone
from tiering.endpoint.event_loop import run
from tiering.endpoint.fetch_loop.loading import answer_ready
from tiering.endpoint.fetch_loop.loop import AnswerReady
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.server import Server
from tiering.endpoint.transport import listen

Load = Callable[[], AnswerReady | None]


@contextmanager
def served(
    endpoint: Endpoint, of: Listener = PLAINTEXT, *, load: Load | None = None, port: int = 0, **limits: int
) -> Iterator[tuple[str, int]]:
    """The endpoint on a free port, or on one that it had before, with the compiled loop or what `load` gives; after the block it
    has ended."""
    with serving(endpoint, of, load=load, port=port, **limits) as (_, address):
        yield address


@contextmanager
def serving(
    endpoint: Endpoint, of: Listener = PLAINTEXT, *, load: Load | None = None, port: int = 0, **limits: int
) -> Iterator[tuple[Server, tuple[str, int]]]:
    """The same, with the server."""
    listener = listen("127.0.0.1", port)
    address = listener.getsockname()
    context = replace(endpoint.context, cluster=alone(Broker(1, *address)))
    ready = threading.Event()
    config = SocketServerConfig(**limits)
    with ThreadPoolExecutor(config.threads + OWN_THREADS) as pool:
        loaded = load or partial(answer_ready, endpoint.said.append)
        server = Server(context, config, pool, endpoint.said.append, of, load_loop=loaded)

        async def serve() -> None:
            loops.append(asyncio.get_running_loop())
            loops[0].call_soon(ready.set)  # when what is loaded already is in use
            await server.serve(listener)

        loops: list[asyncio.AbstractEventLoop] = []
        thread = threading.Thread(target=run, args=(serve(),))
        thread.start()
        ready.wait()
        try:
            yield server, address
        finally:
            loops[0].call_soon_threadsafe(server.stop)
            thread.join()
