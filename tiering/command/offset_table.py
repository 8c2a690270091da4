"""The answers of `tiering offsets` and of the Spark job `search`: rows, or a table in the form of kafka-get-offsets."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from tiering.command.output import Row, emit

if TYPE_CHECKING:
    from local_log.formats.list_offsets import TimestampOffset

Answer = tuple[str, int, "TimestampOffset | None"]
"""Topic, partition, and what was found there."""


def show(answers: Iterable[Answer], output: str) -> None:
    """Prints answers, here and in the job that searches: as rows, the table in the form of kafka-get-offsets."""
    rows = (_row(*answer) for answer in answers)
    if output == "table":
        for row in rows:
            click.echo(f"{row['topic']}:{row['partition']}:{'' if row['offset'] is None else row['offset']}")
    else:
        emit(rows, output)


def show_segments(answers: Iterable[tuple[str, int, list[int]]], output: str) -> None:
    """Prints several offsets for each partition: as rows, or a table with commas between them."""
    if output == "table":
        for topic, partition, offsets in answers:
            click.echo(f"{topic}:{partition}:{','.join(map(str, offsets))}")
    else:
        emit(({"topic": topic, "partition": n, "offsets": offsets} for topic, n, offsets in answers), output)


def _row(topic: str, partition: int, found: "TimestampOffset | None") -> Row:
    return {
        "topic": topic,
        "partition": partition,
        "offset": found.offset if found else None,
        "timestamp": found.timestamp if found else None,
        "leader_epoch": found.leader_epoch if found else None,
    }
