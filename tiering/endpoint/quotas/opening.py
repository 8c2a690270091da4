"""The file of quotas out of an option."""

from collections.abc import Callable

from tiering.endpoint.quotas.client_quotas import ClientQuotas
from tiering.endpoint.quotas.quota_file import QuotaFile
from tiering.machine import CLOCK, local_disk, writable_disk


def open_quotas(path: str | None, report: Callable[[str], object]) -> tuple[ClientQuotas | None, QuotaFile | None]:
    """The quotas and their file, read once; nothing without a path. Raises LogError for one that cannot be used."""
    if path is None:
        return None, None
    quotas = ClientQuotas()
    file = QuotaFile(local_disk(), writable_disk(), path, CLOCK, quotas, report)
    file.load()
    return quotas, file
