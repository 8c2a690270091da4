"""A store that answers no more once the agent aborts what it is doing: each call, and each part of an upload, asks first."""

from collections.abc import Iterable, Iterator

from remote.store.api import AbandonedUpload, Body, ObjectMeta, ObjectStore
from tiering.agent.controls import Controls


class Abortable:
    """`inner`; every verb raises Aborted, too."""

    def __init__(self, inner: ObjectStore, controls: Controls) -> None:
        self.inner = inner
        self.url = inner.url
        self._controls = controls

    def get(self, key: str) -> bytes:
        self._controls.check()
        return self.inner.get(key)

    def get_range(self, key: str, start: int, end: int) -> Body:
        self._controls.check()
        return self.inner.get_range(key, start, end)

    def head(self, key: str) -> ObjectMeta:
        self._controls.check()
        return self.inner.head(key)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        for meta in self.inner.list(prefix, limit=limit, start_after=start_after):
            self._controls.check()
            yield meta

    def list_folders(self, prefix: str) -> Iterator[str]:
        self._controls.check()
        return self.inner.list_folders(prefix)

    def put_if_absent(self, key: str, body: Body) -> None:
        self._controls.check()
        self.inner.put_if_absent(key, body)

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        self._controls.check()
        is_once = iter(parts) is parts
        checked = _checked(parts, self._controls) if is_once else _Again(parts, self._controls)
        self.inner.upload(key, checked, size=size, crc32c=crc32c)

    def delete(self, key: str) -> None:
        self._controls.check()
        self.inner.delete(key)

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        self._controls.check()
        return self.inner.abandoned_uploads(prefix, before_ms)

    def abort_upload(self, upload: AbandonedUpload) -> None:
        self._controls.check()
        self.inner.abort_upload(upload)


class _Again:
    """Parts that can be read again, so that the upload can be repeated."""

    def __init__(self, parts: Iterable[Body], controls: Controls) -> None:
        self._parts = parts
        self._controls = controls

    def __iter__(self) -> Iterator[Body]:
        return _checked(self._parts, self._controls)


def _checked(parts: Iterable[Body], controls: Controls) -> Iterator[Body]:
    for part in parts:
        controls.check()
        yield part
