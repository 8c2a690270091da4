"""`tiering log`: a look at one partition's folder."""

import click

from tiering.console import emit, output_option, reports_errors


@click.group("log")
def command() -> None:
    """Look at a partition's folder in a log directory."""


@command.command("dump")
@click.argument("folder", metavar="DIR")
@click.option("--batches", "what", flag_value="batches", help="A line for every batch header.")
@click.option("--records", "what", flag_value="records", help="A line for every record, control records too.")
@click.option("--snapshots", "what", flag_value="snapshots", help="A line for every producer in every snapshot.")
@output_option("jsonl")
@reports_errors
def dump(folder: str, what: str | None, output: str) -> None:
    """Print what a partition's folder DIR holds, as kafka-dump-log reads it. Keys, values and headers are in base64."""
    from tiering.dump import batches, records, snapshots

    verbs = {"batches": batches, "records": records, "snapshots": snapshots}
    if what is None:
        raise click.UsageError("say what: --batches, --records or --snapshots")
    emit(verbs[what](folder.rstrip("/")), output)
