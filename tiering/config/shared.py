"""Names that options and settings share, in a module without imports, so that `--help` loads quickly."""

from typing import Final

VARIABLES: Final = "TIERING_"
"""What the name of every variable of ours begins with."""
CONFIG_VARIABLE: Final = "TIERING_CONFIG"
KEYS_VARIABLE: Final = "TIERING_KEYS"

THREADS: Final = 4
"""Kafka's default is 10; each holds up to 64 MiB of a segment while it is encrypted."""
THREADS_MAX: Final = 64
CHUNK_BYTES_MIN: Final = 1 << 16

AGENT_TASKS: Final = ("copy", "expire", "sweep", "scrub")
AGENT_ADDRESS: Final = "127.0.0.1:9595"


def variable_of(name: str) -> str:
    """The variable of the environment that holds a setting."""
    return VARIABLES + name.upper().replace(".", "_")
