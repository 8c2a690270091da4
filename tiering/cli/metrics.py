"""`tiering metrics`: what the agent tells Prometheus, and what to do with it."""

import click

from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.options import output_option
from tiering.command.output import emit
from tiering.metrics import series, shipped


@click.group("metrics")
def command() -> None:
    """List the metrics that the agent serves at /metrics, and print a dashboard and alerts for them."""


@command.command("list")
@output_option()
@reports_errors
def list_(output: str) -> Exit | None:
    """List every metric, and the MBean of Kafka's tiered storage that it corresponds to."""
    emit((series.row(one) for one in series.ALL), output)
    return None


@command.command("dashboard")
@reports_errors
def dashboard() -> Exit | None:
    """Print a Grafana dashboard to import.

    \b
    Examples:
      tiering metrics dashboard > tiering.json
    """
    click.echo(shipped.dashboard(), nl=False)
    return None


@command.command("alerts")
@reports_errors
def alerts() -> Exit | None:
    """Print alerting rules for Prometheus' rule_files.

    \b
    Examples:
      tiering metrics alerts > tiering.rules.yml
    """
    click.echo(shipped.alerts(), nl=False)
    return None
