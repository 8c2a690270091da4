"""A reader of one tier or both, for the tests of the API."""

from typing import Any

import pytest
from logs_to_archive import offload_all
from tiered_worlds import World

from remote.store.folder.store import FolderStore
from tiering.api import open_reader


@pytest.fixture(scope="package")
def archive(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The golden logs, cut finer, in a folder."""
    folder = tmp_path_factory.mktemp("api") / "archive"
    offload_all(world.folders["local alone"], FolderStore(str(folder)))
    return str(folder)


@pytest.fixture(params=["archive", "local", "both"])
def reader(request: pytest.FixtureRequest, world: World, archive: str) -> Any:
    """One tier or both. Where both are, the local one has lost some of what is archived."""
    folder = {"local": world.folders["local alone"], "both": world.folders["some archived dropped"]}.get(request.param)
    with open_reader(archive=None if request.param == "local" else archive, log_dir=str(folder) if folder else None) as opened:
        yield opened
