"""`tiering doctor`: tells whether a store can be trusted with an archive."""

import json

import click

from remote.clock import RandomIds, SystemClock
from remote.stores import open_backend, open_store
from tiering.console import Exit, archive_option, exit_code_of, reports_errors
from tiering.doctor import Finding, Verdict, examine


@click.command("doctor")
@archive_option(required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON array instead of lines.")
@reports_errors
def command(archive_url: str, as_json: bool) -> Exit | None:
    """Ask a store for everything that an archive needs of it, and say what a broken promise means.

    It makes a few objects of its own at the archive's root (10 MB on their way), deletes them again, and touches nothing else.
    The exit code is 0 where nothing FAILs, 5 where the store did not answer.
    """
    findings: list[Finding] = []
    try:
        for finding in examine(open_store(archive_url), open_backend(archive_url), SystemClock(), RandomIds()):
            findings.append(finding)
            if not as_json:
                _print(finding)
    finally:
        if as_json:
            rows = [{"check": f.check, "verdict": f.verdict, "seen": f.seen, "remedy": f.remedy} for f in findings]
            click.echo(json.dumps(rows, indent=1))
    failed = [finding for finding in findings if finding.verdict is Verdict.fail]
    if not failed:
        return None
    return exit_code_of(failed[0].error) if failed[0].error else Exit.failure


def _print(finding: Finding) -> None:
    click.echo(f"{finding.verdict:4}  {finding.check:9}  {finding.seen}")
    if finding.remedy:
        click.echo(f"{'':17}{finding.remedy}")
