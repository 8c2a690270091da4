"""Commits compacted segments in the place of those that are archived, by a writer that holds the manifest."""

from collections.abc import Callable
from typing import Final

from remote.manifest.entries import Pages
from remote.manifest.held_manifest import HeldManifest
from remote.manifest.model import Manifest
from remote.manifest.own_objects import put_own
from remote.manifest.signatures import signing_key_of
from remote.manifest.superseding import Superseding, superseding
from tiering.offload.changed import Changed
from tiering.offload.cleaned import Cleaned

ATTEMPTS_MAX: Final = 4
"""How often it is planned anew because another writer has committed in between."""


def supersede(held: HeldManifest, group: Cleaned, in_place: Callable[[Superseding, Manifest], Manifest]) -> bool:
    """Commits what `in_place` makes of a manifest; False if another process has superseded the group's entries meanwhile.

    Raises Changed if others commit again and again, and what a commit raises.
    """
    writer = held.writer
    store, path = writer.store, writer.path
    ids, within = [e.segment_id for e in group.entries], (group.start, group.end)
    hashed = bool(signing_key_of(store))
    is_done = False
    for _ in range(ATTEMPTS_MAX):
        step = superseding(held.manifest, ids, within, Pages(store, path).read, writer.ids.new_id, hashed=hashed)
        if step is None:
            return False
        for page in (*step.made, *step.waiting):
            put_own(store, writer.clock, path.page(page.ref.name), page.body)

        def change(before: Manifest, step: Superseding = step) -> Manifest:
            nonlocal is_done
            is_done = before.put_id == step.planned_on
            return in_place(step, before)

        held.commit(change)
        if is_done:
            return True
    raise Changed(f"{path}: others have committed {ATTEMPTS_MAX} times in the meantime; offload again")
