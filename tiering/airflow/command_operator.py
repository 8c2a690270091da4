"""What the operators have in common: a command is run as the connection says, and its exit code says what Airflow does next."""

import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from local_log.errors import Corrupt, Invalid, NotFound
from tiering.airflow.command_line import CommandLine
from tiering.airflow.hooks import TieringHook
from tiering.airflow.sdk import AirflowException, AirflowFailException, BaseOperator, Context
from tiering.command.exit_codes import Exit
from tiering.command.output import Row

_FINAL: Final = (Exit.usage, Exit.not_found, Exit.corruption)
"""What another try would find the same. All else is tried again, as often as the task's `retries` say."""

_SAID_MAX: Final = 5


class CommandOperator(BaseOperator):
    """A task that runs a command of ours; its messages go to the task's log.

    `tiering_conn_id`: the connection, None for what the worker's environment says. `python`: whose packages have ours, on the
    worker; unless given, that of the task.
    """

    template_fields: Sequence[str] = ("tiering_conn_id",)

    def __init__(
        self, *, tiering_conn_id: str | None = TieringHook.default_conn_name, python: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.tiering_conn_id = tiering_conn_id
        self.python = python
        self._command: CommandLine | None = None

    def execute(self, context: Context) -> Any:
        """Does the task's work. Raises AirflowFailException where another try would meet the same, AirflowException else."""
        try:
            return self.work(context)
        except (Invalid, NotFound, Corrupt) as e:
            raise AirflowFailException(str(e)) from e

    def work(self, context: Context) -> Any:
        """What the task does, and what it returns."""
        raise NotImplementedError

    @property
    def hook(self) -> TieringHook:
        """The hook of this task's connection."""
        return TieringHook(self.tiering_conn_id)

    def run_command(self, words: Iterable[str], out: Callable[[str], None]) -> tuple[int, str]:
        """Runs `python -m words`, telling each line of its output; gives the exit code and the last that it said."""
        said: deque[str] = deque(maxlen=_SAID_MAX)

        def tell(message: str) -> None:
            said.append(message)
            self.log.info("%s", message)

        command = [self.python or sys.executable, "-m", *words]
        self.log.info("%s", " ".join(command))
        self._command = CommandLine(command, self.hook.environment())
        return self._command.run(out, tell), "; ".join(said)

    def run_for_rows(self, words: Iterable[str], take: Callable[[Row], None]) -> tuple[int, str]:
        """The same for a command of `tiering` that answers rows. Raises Invalid if no archive is given."""
        self.hook.archive_url()
        return self.run_command(["tiering", *words, "--output", "jsonl"], lambda line: take(json.loads(line)))

    def on_kill(self) -> None:
        """Ends the command with its task."""
        if self._command is not None:
            self._command.end()


def refuse_failure(code: int, said: str) -> None:
    """Raises AirflowFailException where another try makes no sense, AirflowException for any other code but 0."""
    if code == Exit.done:
        return
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    error = AirflowFailException if code in _FINAL else AirflowException
    raise error(f"the command ended with {how}: {said or 'it said nothing'}")


def listed_words(value: Any) -> list[str]:
    """What an argument says that may be a list or, out of a template, one text; None and an empty text for nothing."""
    if value is None or value == "":
        return []
    return [value] if isinstance(value, str) else [str(item) for item in value]


def flag(name: str, value: Any) -> list[str]:
    """An option without a value, where it is true; a template may have made a text of it."""
    return [name] if value is True or str(value).lower() == "true" else []


def option(name: str, value: Any) -> list[str]:
    """An option as often as it has values."""
    values = listed_words(value if isinstance(value, str | list | tuple | None) else [value])
    return [word for item in values for word in (name, item)]
