"""A command in a process of its own."""

import signal
import sys
from collections.abc import Iterable

import pytest

from tiering.airflow import command_line
from tiering.airflow.command_line import CommandLine


def python(program: str, **environment: str) -> CommandLine:
    return CommandLine([sys.executable, "-c", program], environment)


def ran(command: CommandLine) -> tuple[int, list[str], list[str]]:
    out: list[str] = []
    said: list[str] = []
    return command.run(out.append, said.append), out, said


def test_each_stream_comes_line_by_line_and_the_exit_code_last() -> None:
    program = "import sys; print('a'); print('é', file=sys.stderr); print('\\nb', end=''); sys.exit(5)"
    assert ran(python(program, PYTHONIOENCODING="utf-8")) == (5, ["a", "b"], ["é"])


def test_more_than_a_pipe_holds_comes_whole() -> None:
    program = "import sys\nfor n in range(20000): print(n); print(-n, file=sys.stderr)"
    assert ran(python(program)) == (0, [str(n) for n in range(20000)], [str(-n) for n in range(20000)])


def test_a_line_without_end_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_line, "LINE_BYTES_MAX", 100_000)
    _, out, _ = ran(python("print('x' * 400_000)"))
    assert len(out) > 1
    assert "".join(out) == "x" * 400_000


def test_the_environment_is_that_of_this_process_and_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "1")
    monkeypatch.setenv("TWO", "1")
    assert ran(python("import os; print(os.environ['ONE'] + os.environ['TWO'])", TWO="2"))[1] == ["12"]


def test_a_command_that_is_to_end_ends_by_a_signal() -> None:
    command = python("print('up', flush=True); import time; time.sleep(60)")
    assert command.run(lambda _: command.end(), print) == -signal.SIGTERM
    command.end()


def test_where_nobody_takes_its_lines_the_command_is_ended() -> None:
    def refuse(line: str) -> None:
        raise KeyError(line)

    with pytest.raises(KeyError, match="up"):
        python("print('up', flush=True); import time; time.sleep(60)").run(refuse, refuse)


@pytest.mark.parametrize("words", [["/not/there"], ["/"]])
def test_a_command_that_cannot_be_started_says_so(words: Iterable[str]) -> None:
    with pytest.raises(OSError, match=r"not/there|Permission"):
        CommandLine([*words], {}).run(print, print)
