"""The fixtures of `tiering_fixtures` and `cli_fixtures`, of the second where both have one."""

from tiering_fixtures import *  # noqa: F403, I001  # a fixture is found where its name is
from cli_fixtures import *  # noqa: F403
