"""What is kept of a client that does not come back, and what a round needs to have done."""

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories.activity import LEAST_A_MINUTE, too_little
from histories.evidence import keep_evidence, keep_groups, librdkafka_log, where
from histories.nemesis import Server
from histories.operations import History, Operation


@pytest.fixture
def stuck() -> Iterator[threading.Thread]:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait, name="app0")
    thread.start()
    yield thread
    ends.set()
    thread.join()


def test_the_call_that_a_client_does_not_come_back_from_is_told(stuck: threading.Thread) -> None:
    assert "self._cond.wait(timeout)" in where(stuck)


def test_the_stacks_of_all_threads_and_what_their_transactions_are_is_kept(tmp_path: Path, stuck: threading.Thread) -> None:
    keep_evidence(Server(tmp_path), ["app0"])
    kept = (tmp_path / "stuck").read_text()
    assert f"app0 is {stuck.ident or 0:#x}" in kept
    assert kept.count('threading.py", line') >= 2
    assert "rx_queue" in kept
    assert "Connection refused" in kept


def test_what_the_members_of_groups_have_is_asked_for_by_both_protocols(tmp_path: Path) -> None:
    keep_groups(Server(tmp_path), ("modern",))
    assert (tmp_path / "groups").read_text().count("Connection refused") == 2


def test_what_librdkafka_says_goes_to_a_file_and_python_s_messages_do_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with librdkafka_log(tmp_path / "log"):
        os.write(2, b"of librdkafka\n")
        sys.stderr.write("of python\n")
    os.write(2, b"later\n")
    assert (tmp_path / "log").read_text() == "of librdkafka\n"
    assert capfd.readouterr().err == "of python\nlater\n"


def test_what_only_a_bug_has_a_server_say_is_noted(tmp_path: Path) -> None:
    server = Server(tmp_path)
    told = "tiering: orders-0: 3 offsets are lost, they left the log before they were archived"
    (tmp_path / "said").write_text(f"tiering: 2 topics at 127.0.0.1:1\n{told}\ntiering: the store responds again, after 2 s\n")
    assert server.complaints() == [told]


def a_minute(of: str, *, but: int = 0) -> History:
    kinds = [kind for kind, least in LEAST_A_MINUTE.items() for _ in range(least)]
    return tuple(Operation(index, of, *kind, 0, 0) for index, kind in enumerate(kinds[but:]))


def test_a_round_needs_so_many_operations_of_each_kind_and_one_of_each_client() -> None:
    assert too_little(a_minute("app0"), ["app0"], 60) == []
    assert too_little(a_minute("app0.first"), ["app0"], 30) == []
    assert too_little(a_minute("app0"), ["app0", "app1"], 60) == ["client app1 has done nothing"]
    assert too_little(a_minute("app0", but=1), ["app0"], 60) == ["only 499 operations are send ok, of 500 a minute"]
    assert len(too_little((), ["app0"], 60)) == 1 + len(LEAST_A_MINUTE)
