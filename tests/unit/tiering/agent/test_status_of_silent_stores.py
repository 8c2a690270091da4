"""`tiering status` where no agent answers and the store does not respond, either."""

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from archive_fakes import Door, FixedClock, MemoryStore
from golden_logs import broker_logs

from local_log.log_dir import LogDir
from remote.store.instrumented import Trouble
from tiering.agent import status as of
from tiering.agent.memory import Memory
from tiering.config.load import load_config
from tiering.machine import folder_holder, local_disk

PROBLEM = "memory: another/manifest/: no answer"


class Silent(Door):
    """Answers nothing."""

    def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
        Event().wait()


def test_a_partition_that_was_not_asked_for_is_not_said_to_have_the_error_of_another(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path, "g-txn-0", "g-epochs-0")
    config = load_config(None, {}, local_disk(), (f"log.dirs={logs}", "archive.url=nowhere"))
    clock = FixedClock()
    places = of.Places(
        (LogDir(local_disk(), str(logs)),),
        Silent(MemoryStore(clock)),
        config,
        Memory(),
        (),
        lambda topic: None,
        lambda s: Trouble(60, PROBLEM),
    )
    found = of.status(places, folder_holder(), clock)
    assert found["last_error"]["message"] == PROBLEM
    assert [row["error"] for row in found["partitions"]] == [
        f"{places.store.url} does not respond: only the log directory is shown"
    ] * 2
    assert all(row["unprotected_records"] for row in found["partitions"])
