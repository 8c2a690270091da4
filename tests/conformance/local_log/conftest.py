"""The fixtures of `local_log_fixtures`."""

from local_log_fixtures import *  # noqa: F403  # a fixture is found where its name is
