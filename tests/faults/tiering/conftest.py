"""The fixtures of `tiering_fixtures`."""

from tiering_fixtures import *  # noqa: F403  # a fixture is found where its name is
