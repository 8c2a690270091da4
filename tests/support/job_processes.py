"""Processes of Spark jobs: where they find our packages, and how long they may take."""

import os
from pathlib import Path

import fast_java

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 250


def environment(**more: str) -> dict[str, str]:
    """That of this process without its Spark, but for what lets Java and Python start soon."""
    kept = (*fast_java.VARIABLES, "PYSPARK_PYTHON")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK")) or name in kept}
    return {**env, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")]), **more}
