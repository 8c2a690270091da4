"""Processes of Spark jobs: where they find our packages, and how long they may take."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 250


def environment(**more: str) -> dict[str, str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK")) or name == "PYSPARK_PYTHON"
    }
    return {**env, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")]), **more}
