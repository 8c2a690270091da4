"""The fixtures of `cli_fixtures`."""

from cli_fixtures import *  # noqa: F403  # a fixture is found where its name is
