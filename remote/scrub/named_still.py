"""Whether an archive still names what a scrub finds damaged: it may have been deleted since the scrub read the manifest."""

from local_log.errors import Corrupt, Invalid
from remote.keys import PartitionPath, parse_page_name
from remote.manifest.entries import Entries
from remote.manifest.store import load_newest
from remote.manifest.write_record import as_decided
from remote.store.api import ReadableStore


def is_named_still(store: ReadableStore, path: PartitionPath, name: str) -> bool:
    """Whether the newest version has a page of this name, or a segment with an object of it. Raises Unavailable,
    RequestsExhausted.

    True if the newest version cannot be read, which is a finding of its own.
    """
    try:
        newest = load_newest(store, path)
        if newest is None:
            return False
        entries = Entries.of(store, as_decided(store, newest.manifest))
        if parse_page_name(name) is not None:
            return name in entries.page_names()
        return any(name in (e.log_name, e.aux_name) for e in entries)
    except (Corrupt, Invalid):
        return True


def not_named_any_more(name: str) -> str:
    """Why an object was not checked, for `not_checked`."""
    return f"{name}: the archive does not name it any more, and it may have been deleted meanwhile"
