"""The fixtures of `spark_fixtures`, and the logs of `tiering_fixtures`."""

from spark_fixtures import *  # noqa: F403  # a fixture is found where its name is
from tiering_fixtures import world as world
