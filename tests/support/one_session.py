"""How xdist divides the tests: all of a file go to one worker, and so do all files that need one Spark session.

A session takes eight seconds of CPU to start and many more until its code is compiled, in each worker that starts one.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_FIXTURE = re.compile(r"[(\s](spark(?=: )|spark_and_kafka)\b")


class OneSession(LoadFileScheduling):
    """Two sessions, since one would be at work as long as all other tests: those with Kafka have their own."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        self._unit_of = cache(lambda file: unit_of(config.rootpath / file))

    def _split_scope(self, nodeid: str) -> str:
        return self._unit_of(nodeid.partition("::")[0])


def unit_of(file: Path) -> str:
    """What a file is run with: the session that its tests take as a fixture, or nothing else than itself."""
    used = {found[1] for found in _FIXTURE.finditer(file.read_text())}
    return max(used, default=str(file))
