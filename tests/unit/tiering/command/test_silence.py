import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from remote.store.instrumented import WAITING_S_MIN, Meter, Trouble

ARCHIVE = "s3://nobody-there/archive"
COMMANDS = (
    ("describe", "--archive", ARCHIVE),
    ("offsets", "--archive", ARCHIVE, "--topic", "orders"),
    ("scrub", "--archive", ARCHIVE),
)


@pytest.fixture(params=["nobody listens", "nobody answers"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address of a store that is wrong."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if request.param == "nobody answers":
            listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.slow
def test_a_wrong_endpoint_is_told_while_the_command_still_tries(endpoint: str) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1"}
    environment = {**os.environ, **keys, "AWS_ENDPOINT_URL": endpoint}
    with ExitStack() as until_the_end:
        started = [
            until_the_end.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "tiering", *words, "--archive", ARCHIVE],
                    env=environment,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for words in COMMANDS
        ]
        for process in started:
            until_the_end.callback(process.kill)
            assert process.stderr is not None
            said = process.stderr.readline()
            if "Could not connect to the endpoint URL" in said and "; tried " in said:
                continue  # whom nobody listens to may give up before it is told that it tries
            assert said.startswith(f"tiering: {ARCHIVE} has not answered yet: "), said
            assert said.endswith("; trying again\n"), said


def test_a_store_that_has_answered_once_is_known() -> None:
    meter = Meter()
    assert meter.unanswered(100.0) is None
    first = meter.begin("get", 0.0)
    assert meter.unanswered(WAITING_S_MIN / 2) is None
    assert meter.unanswered(3.0) == Trouble(3.0, "no answer to get; check the address and the network")
    meter.end(first, 3.0, 3.0, None)
    meter.begin("get", 4.0)
    assert meter.unanswered(100.0) is None
