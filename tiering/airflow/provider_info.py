"""The provider information that Airflow loads when it starts. Imports nothing else."""

from typing import Any

from tiering import __version__

CONNECTION_TYPE = "tiering"
_NAME = "Kafka tiering"


def _of(*modules: str) -> list[dict[str, Any]]:
    return [{"integration-name": _NAME, "python-modules": [f"tiering.airflow.{module}" for module in modules]}]


def get_provider_info() -> dict[str, Any]:
    """The provider's description, as `provider_info.schema.json` of Airflow has it."""
    return {
        "package-name": "kafka-tiering",
        "name": _NAME,
        "description": "Copies a Kafka broker's closed log segments to object storage, and reads them there without a broker.",
        "versions": [__version__],
        "integrations": [{"integration-name": _NAME, "tags": ["service"]}],
        "hooks": _of("hooks"),
        "operators": _of("operators", "spark_operator", "spark_commands"),
        "sensors": _of("sensors"),
        "triggers": _of("triggers"),
        "asset-uris": [{"schemes": [CONNECTION_TYPE], "handler": None}],
        "connection-types": [
            {
                "connection-type": CONNECTION_TYPE,
                "hook-class-name": "tiering.airflow.hooks.TieringHook",
                "hook-name": _NAME,
                "ui-field-behaviour": {
                    "hidden-fields": ["host", "schema", "port", "login", "password", "extra"],
                    "relabeling": {},
                    "placeholders": {
                        "archive": "s3://bucket/prefix",
                        "log_dir": "/var/lib/kafka/data",
                        "config": "/etc/tiering.toml",
                        "keys": "aws-kms://KEY",
                    },
                },
                "conn-fields": {
                    "archive": _field(
                        "Archive", "A folder, s3://bucket/prefix, gs:// or abfs://; else what the configuration says."
                    ),
                    "log_dir": _field("Log directory", "One of the broker's log.dirs on the workers; only read."),
                    "config": _field("Configuration", "A TOML or properties file on the workers."),
                    "keys": _field("Keys", "Where the keys of encrypted segments are: a file, env://NAME or aws-kms://KEY."),
                },
            }
        ],
    }


def _field(label: str, description: str) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"]}}
