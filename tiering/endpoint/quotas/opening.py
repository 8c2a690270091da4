"""The file of quotas out of an option."""

from collections.abc import Callable

from tiering.endpoint.quotas.client_quotas import ClientQuotas
from tiering.endpoint.quotas.quota_file import read_quotas
from tiering.endpoint.watched_file import WatchedFile
from tiering.machine import CLOCK, local_disk


def open_quotas(path: str | None, report: Callable[[str], object]) -> tuple[ClientQuotas | None, tuple[WatchedFile, ...]]:
    """The quotas and their file, read once; nothing without a path. Raises LogError for one that cannot be used."""
    if path is None:
        return None, ()
    quotas = ClientQuotas()

    def take(data: bytes) -> None:
        quotas.rates = read_quotas(data)

    file = WatchedFile(local_disk(), path, CLOCK, take, report)
    file.load()
    return quotas, (file,)
