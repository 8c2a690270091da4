from collections.abc import Iterator
from pathlib import Path

import pytest
from asked_endpoint import Endpoint, over_each_tier
from logs_to_archive import copy_of
from loop_clients import fetch_loop
from tiered_worlds import World

from tiering.endpoint.fetch_loop.loop import FetchLoop


@pytest.fixture(scope="module")
def endpoints(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Endpoint]:
    """Over the log directory, over it with an archive behind it, and over a folder of segments alone."""
    return over_each_tier(world, tmp_path_factory.mktemp("folder"))


@pytest.fixture
def loop(endpoints: list[Endpoint]) -> Iterator[FetchLoop]:
    with fetch_loop(endpoints[0]) as found:
        yield found


@pytest.fixture
def changing(world: World, tmp_path: Path) -> Iterator[tuple[Endpoint, FetchLoop, Path]]:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint = Endpoint(folder, None)
    with fetch_loop(endpoint) as found:
        yield endpoint, found, folder
