"""A store that answers so many requests and no more, for a scrub that may cost so much and no more."""

from collections.abc import Iterator

from remote.store.api import Body, ObjectMeta, ReadableStore

LISTED_PER_REQUEST = 1000
"""What S3 gives at a time."""


class RequestsExhausted(Exception):
    """The requests are used up. No failure: a walk is told to stop."""


class RequestBudget:
    """A store that raises Spent once it has been asked `requests_max` times; None is no limit. `requests` counts."""

    def __init__(self, store: ReadableStore, requests_max: int | None = None) -> None:
        self._store = store
        self._max = requests_max
        self.requests = 0

    def get(self, key: str) -> bytes:
        """See ObjectReader."""
        self._ask()
        return self._store.get(key)

    def get_range(self, key: str, start: int, end: int) -> Body:
        """See ObjectReader."""
        self._ask()
        return self._store.get_range(key, start, end)

    def head(self, key: str) -> ObjectMeta:
        """See ObjectReader."""
        self._ask()
        return self._store.head(key)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """See ObjectLister. A request for every thousand objects."""
        self._ask()
        for number, meta in enumerate(self._store.list(prefix, limit=limit, start_after=start_after), 1):
            yield meta
            if number % LISTED_PER_REQUEST == 0:
                self._ask()

    def list_folders(self, prefix: str) -> Iterator[str]:
        """See ObjectLister."""
        self._ask()
        return self._store.list_folders(prefix)

    def _ask(self) -> None:
        if self._max is not None and self.requests >= self._max:
            raise RequestsExhausted
        self.requests += 1
