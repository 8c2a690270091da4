"""The HTTP pages of an endpoint with log directories of its own: those of an endpoint, and those of the agent in its process."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from remote.clock import stopwatch
from tiering.agent import pages as of_agent
from tiering.agent.configured import token
from tiering.agent.http.guard import Guard
from tiering.agent.http.server import JSON, HttpServer, Page, Pages
from tiering.agent.overview import agent_overview, tier_overview
from tiering.agent.own_dirs import OwnDirs
from tiering.agent.wiring import guard
from tiering.config.config import Config
from tiering.endpoint.broker_server import BrokerServer
from tiering.endpoint.settings import HTTP_ADDRESS, HTTP_NAMES
from tiering.metrics import endpoint_pages as of_endpoint
from tiering.metrics.endpoint_overview import EndpointOverview
from tiering.metrics.exposition import exposition
from tiering.metrics.own_values import OwnView, own_values

_AGENTS_ADDRESS = "agent.http.address"


@contextmanager
def serving_own_pages(server: BrokerServer, dirs: OwnDirs, config: Config) -> Iterator[tuple[str, ...]]:
    """Serves them while the block lasts, at both addresses if both are set; gives the addresses. Raises LogError.

    `tiering status` and `tiering agent pause` find the agent at the first one.
    """
    settings, pages = server.context.settings, own_pages(server, dirs)
    names = frozenset(settings[HTTP_NAMES])
    wanted = {HTTP_ADDRESS.name: (settings[HTTP_ADDRESS], Guard(names, token(config), HTTP_NAMES.name))}
    if _AGENTS_ADDRESS in config.places:
        wanted[_AGENTS_ADDRESS] = config.settings.agent_http_address, guard(config)
    addresses = list[str]()
    with ExitStack() as stack:
        for setting, (address, guarded_by) in wanted.items():
            if address is None or address in addresses:
                continue
            http = HttpServer(address, pages, guarded_by, setting=setting)
            stack.callback(http.close)
            http.start()
            addresses.append(http.address)
        if dirs.agent is not None:
            dirs.agent.agent.remember(addresses[0] if addresses else "")
        yield tuple(addresses)


def own_pages(server: BrokerServer, dirs: OwnDirs) -> Pages:
    """By method and path. Whether it is ready is the endpoint's to say: clients are served also while a store fails."""
    metrics = exposition(lambda: own_values(OwnView.of(server, dirs)))
    endpoint = of_endpoint.pages_of(lambda: server.server.status, metrics, stopwatch, lambda: _overview(server, dirs))
    if dirs.agent is None:
        return {**endpoint, ("GET", "/status"): lambda: _status_without_archive(dirs)}
    agent, controls = dirs.agent.agent, dirs.agent.controls
    agents = of_agent.pages_of(agent.view, controls, endpoint["GET", "/metrics"])
    alive = _first_that_fails(endpoint["GET", "/healthz"], agents["GET", "/healthz"])
    return {**agents, **endpoint, ("GET", "/healthz"): alive}


def _overview(server: BrokerServer, dirs: OwnDirs) -> dict[str, Any]:
    endpoint = EndpointOverview.of(server).row()
    if dirs.agent is None:
        return {"endpoint": {**endpoint, "local_tier": tier_overview(dirs.service.status())}}
    return {"agent": agent_overview(dirs.agent.agent.view()), "endpoint": endpoint}


def _first_that_fails(*pages: Callable[[], Page]) -> Callable[[], Page]:
    def page() -> Page:
        found = [one() for one in pages]
        return next((one for one in found if one.status != 200), found[0])

    return page


def _status_without_archive(dirs: OwnDirs) -> Page:
    tier = dirs.service.status()
    row = {"state": tier.state, "log_dirs": list(dirs.tier.directories), "archive": None, "local_tier": tier.row()}
    return Page(json.dumps(row, indent=1).encode() + b"\n", JSON)
