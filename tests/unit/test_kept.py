"""What the tests bring or make once on a machine."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import real_kafka
from kept import made_once

SLOW_MAVEN = """#!/bin/sh
for word; do folder=${word#-DoutputDirectory=}; done
mkdir "$folder" && sleep 0.1 && echo jar > "$folder/kafka.jar"
"""


def test_workers_that_want_the_same_jars_at_once_get_them_and_bring_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(SLOW_MAVEN)
    maven.chmod(0o755)
    monkeypatch.setenv("PATH", str(maven.parent), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(real_kafka, "java_home", lambda: "")

    with ThreadPoolExecutor(2) as workers:
        found = list(workers.map(real_kafka.jars, [real_kafka.BROKER] * 2))

    (folder,) = (tmp_path / "cache" / "kafka-tiering").glob("broker-pom-*")
    assert found == [[folder / "kafka.jar"]] * 2


def test_what_could_not_be_made_is_not_there_and_is_made_the_next_time(tmp_path: Path) -> None:
    made, lock = tmp_path / "cache" / "clients", tmp_path / "cache" / "lock"

    def fails(to: Path) -> None:
        (to / "half").mkdir(parents=True)
        raise OSError("no network")

    with pytest.raises(OSError, match="no network"):
        made_once(made, fails, lock)
    assert list(made.parent.iterdir()) == [lock]

    assert made_once(made, lambda to: to.write_text("all of it"), lock) == made
    assert made_once(made, fails, lock).read_text() == "all of it"
