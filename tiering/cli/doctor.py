"""`tiering doctor`: tells whether a store can be trusted with an archive."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tiering.command.exit_codes import Exit, exit_code_of, reports_errors
from tiering.command.options import archive_option, output_option
from tiering.command.output import emit
from tiering.command.terminal import alarming, printable
from tiering.machine import CLOCK, IDS, open_backend, open_store

if TYPE_CHECKING:
    from tiering.doctor.checks import Finding


@click.command("doctor")
@archive_option(required=True)
@output_option()
@reports_errors
def command(archive_url: str, output: str) -> Exit | None:
    """Test whether a store meets all requirements of an archive, and explain each failure.

    It creates a few objects at the archive's root (10 MB of traffic), deletes them again, and changes nothing else. The exit
    code is 0 if no test FAILs, and 5 if the store did not respond.

    \b
    Examples:
      tiering doctor --archive s3://bucket/kafka
    """
    from tiering.doctor.checks import Verdict
    from tiering.doctor.report import examine

    findings: list[Finding] = []

    def found() -> "Iterator[Finding]":
        for finding in examine(open_store(archive_url), open_backend(archive_url), CLOCK, IDS):
            findings.append(finding)
            yield finding

    if output == "table":
        for finding in found():
            _print(finding)
    else:
        emit(({"check": f.check, "verdict": f.verdict, "seen": f.seen, "remedy": f.remedy} for f in found()), output)
    failed = [finding for finding in findings if finding.verdict is Verdict.fail]
    if not failed:
        return None
    return exit_code_of(failed[0].error) if failed[0].error else Exit.failure


def _print(finding: "Finding") -> None:
    from tiering.doctor.checks import Verdict

    verdict = f"{finding.verdict:4}"
    shown = alarming(verdict, sys.stdout) if finding.verdict is Verdict.fail else verdict
    click.echo(f"{shown}  {finding.check:9}  {printable(finding.seen)}")
    if finding.remedy:
        click.echo(f"{'':17}{printable(finding.remedy)}")
