"""The data source `tiering`. What executors load of it imports `remote` and `local_log.formats` and nothing else of ours.

For programs: `plan_report` and `PlanReport`, see `spark_jobs.source.report`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_jobs.source.report import PlanReport, plan_report

__all__ = ["PlanReport", "plan_report"]


def __getattr__(name: str) -> Any:
    # Executors load this package for every task, and have no plan to report on.
    if name in __all__:
        from spark_jobs.source import report

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
