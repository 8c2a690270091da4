"""`tiering log`: a look at one partition's folder."""

import click

from tiering.console import emit, output_option, reports_errors


@click.group("log")
def command() -> None:
    """Look at a partition's folder in a log directory."""


@command.command("dump")
@click.argument("folder", metavar="DIR")
@click.option("--batches", is_flag=True, help="A line for every batch header.")
@click.option("--records", is_flag=True, help="A line for every record, control records too.")
@click.option("--snapshots", is_flag=True, help="A line for every producer in every snapshot.")
@output_option("jsonl")
@reports_errors
def dump(folder: str, batches: bool, records: bool, snapshots: bool, output: str) -> None:
    """Print what a partition's folder DIR holds, as kafka-dump-log reads it. Keys, values and headers are in base64."""
    from tiering import dump as of

    verbs = ((batches, of.batches), (records, of.records), (snapshots, of.snapshots))
    wanted = [verb for is_wanted, verb in verbs if is_wanted]
    if len(wanted) != 1:
        raise click.UsageError("say what, one of them: --batches, --records or --snapshots")
    emit(wanted[0](folder.rstrip("/")), output)
