from collections.abc import Iterator
from pathlib import Path

import pytest
from asked_endpoint import Endpoint
from logs_to_archive import copy_of, offload_all
from loop_clients import fetch_loop
from tiered_worlds import World

from remote.store.open import open_store
from tiering.endpoint.fetch_loop.loop import FetchLoop


@pytest.fixture(scope="module")
def endpoints(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[Endpoint]:
    """Over the log directory, over it with an archive behind it, and over a folder of segments alone."""
    folder = open_store(str(tmp_path_factory.mktemp("folder")))
    offload_all(world.folders["local alone"], folder)
    return [
        Endpoint(world.folders["local alone"], None),
        Endpoint(world.folders["some archived dropped"], world.store),
        Endpoint(None, folder),
    ]


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
