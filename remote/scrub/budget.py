"""A store wrapper that limits how many requests a scrub may make."""

from collections.abc import Iterator

from remote.store.api import Body, ObjectMeta, ReadableStore

LISTED_PER_REQUEST = 1000
"""Objects in one page of S3's ListObjectsV2."""


class RequestsExhausted(Exception):
    """The request limit is reached. Not an error: the scrub stops and reports what it did not check."""


class RequestBudget:
    """A store that raises RequestsExhausted after `requests_max` requests; None is no limit. `requests` counts them."""

    def __init__(self, store: ReadableStore, requests_max: int | None = None) -> None:
        self._store = store
        self._max = requests_max
        self.requests = 0

    def get(self, key: str) -> bytes:
        self._count()
        return self._store.get(key)

    def get_range(self, key: str, start: int, end: int) -> Body:
        self._count()
        return self._store.get_range(key, start, end)

    def head(self, key: str) -> ObjectMeta:
        self._count()
        return self._store.head(key)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """Like ObjectLister.list; counts one request for every LISTED_PER_REQUEST objects."""
        self._count()
        for number, meta in enumerate(self._store.list(prefix, limit=limit, start_after=start_after), 1):
            yield meta
            if number % LISTED_PER_REQUEST == 0:
                self._count()

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._count()
        return self._store.list_folders(prefix)

    def _count(self) -> None:
        if self._max is not None and self.requests >= self._max:
            raise RequestsExhausted
        self.requests += 1
