"""The fixtures of `remote_fixtures`."""

from remote_fixtures import *  # noqa: F403  # a fixture is found where its name is
