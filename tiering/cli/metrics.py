"""`tiering metrics`: what the agent tells Prometheus, and what to do with it."""

import click

from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.options import output_option
from tiering.command.output import emit
from tiering.metrics import series, shipped
from tiering.metrics.endpoint_series import OF_ENDPOINT, OF_OWN_LOGS


@click.group("metrics")
def command() -> None:
    """List the metrics that the agent and the endpoint serve at /metrics, and print dashboards and alerts for them."""


@command.command("list")
@output_option()
@reports_errors
def list_(output: str) -> Exit | None:
    """List every metric, and the MBean of Kafka that it corresponds to."""
    emit((series.row(one) for one in dict.fromkeys((*series.ALL, *OF_ENDPOINT, *OF_OWN_LOGS))), output)
    return None


@command.command("dashboard")
@click.option("--endpoint", "of_endpoint", is_flag=True, help="The dashboard of tiering serve instead of the agent's.")
@reports_errors
def dashboard(of_endpoint: bool) -> Exit | None:
    """Print a Grafana dashboard to import.

    \b
    Examples:
      tiering metrics dashboard > tiering.json
      tiering metrics dashboard --endpoint > endpoint.json
    """
    click.echo(shipped.endpoint_dashboard() if of_endpoint else shipped.dashboard(), nl=False)
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
