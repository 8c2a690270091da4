"""Pages that a test meets in hundreds of lives of one archive, decoded once.

What a page holds follows from its bytes, its ref and its key alone, and nothing of it can be changed: a test that repeats a story
with a fault at each call would decode the same pages thousands of times. A page with another byte is another page.
"""

from collections.abc import Iterator

import pytest

from remote.manifest import pages
from remote.manifest.model import Item, PageRef

_PAGES_MAX = 4_096


@pytest.fixture(scope="module")
def pages_decoded_once() -> Iterator[None]:
    """For a module of tests that repeat such a story."""
    decode = pages.decode
    known: dict[tuple[str, bytes], tuple[PageRef, tuple[Item, ...]]] = {}

    def decoded(body: bytes, ref: PageRef, key: str) -> tuple[Item, ...]:
        before, items = known.get((key, body), (None, ()))
        if before != ref:
            items = decode(body, ref, key)
            if len(known) < _PAGES_MAX:
                known[key, body] = ref, items
        return items

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "decode", decoded)
        yield
