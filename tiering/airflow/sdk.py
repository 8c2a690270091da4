"""What we use of Airflow's SDK, so that one place says how to get it where it is missing or too old."""

try:
    from airflow.sdk import Asset, AssetAlias, BaseHook, BaseOperator, BaseSensorOperator, Context, conf
    from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException
except ImportError as e:
    raise ImportError(f"Airflow 3.1 or newer is needed ({e}); pip install 'kafka-tiering[airflow]'") from e

__all__ = [
    "AirflowException", "AirflowFailException", "AirflowNotFoundException", "Asset", "AssetAlias", "BaseHook", "BaseOperator",
    "BaseSensorOperator", "Context", "conf",
]  # fmt: skip
