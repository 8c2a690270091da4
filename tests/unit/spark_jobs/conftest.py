"""The fixtures of `spark_fixtures`."""

from spark_fixtures import *  # noqa: F403  # a fixture is found where its name is
