"""An archive for every test to damage."""

import pytest
from archive_fakes import MemoryStore
from scrubbed import archive_of, sound_objects


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The objects of an archive of two topics, one of them with a dozen segments and many transactions."""
    return sound_objects(tmp_path_factory.mktemp("logs"))


@pytest.fixture
def store(sound: dict[str, bytes]) -> MemoryStore:
    """The archive, to be damaged."""
    return archive_of(sound)
