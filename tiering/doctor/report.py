"""Asks a store for everything that an archive needs of it, one check after the other, and says what a failed one means.

All it makes are objects of its own under a fresh name at the archive's root; it reads `archive.json` and touches nothing else.
What it made is deleted again, and the right to delete is the first thing that is tried.
"""

from collections.abc import Callable, Iterator

from local_log.errors import LogError
from remote.clock import Clock, Ids
from remote.keys import PROBE_PREFIX
from remote.store.api import Harm, HasRules, ObjectStore
from tiering.doctor.checks import Broken, Finding, StoreProbe, Verdict

_MEANINGS = {
    "reach": "nothing can be read or written: correct the address, the network, the credentials or the right to list",
    "archive": "an archive that cannot be read is not written to either: use a release that knows it, or restore the object",
    "create": "nothing can be archived: allow creating objects (s3:PutObject)",
    "read": "nothing can be verified or read back: allow reading objects (s3:GetObject)",
    "delete": "retention and sweep cannot free anything: allow deleting objects (s3:DeleteObject); remove the object by hand",
}


def examine(store: ObjectStore, backend: ObjectStore, clock: Clock, ids: Ids) -> Iterator[Finding]:
    """A finding for each promise, as it is found; none after one without which the others cannot be asked for.

    `backend` is the bare store inside `store`, which retries.
    """
    probe = StoreProbe(store, f"{PROBE_PREFIX}{ids.new_id()}-", clock)
    try:
        for check, needed in (("reach", True), ("archive", False), ("create", True), ("read", False), ("delete", True)):
            finding = _finding(check, getattr(probe, check))
            yield finding
            if needed and finding.verdict is Verdict.fail:
                return
        for check in ("range", "list", "condition", "race"):
            yield _finding(check, getattr(probe, check))
        upload = _finding("upload", probe.upload)
        yield upload
        if upload.verdict is Verdict.ok:
            yield _finding("checksum", probe.checksum)
        for check in ("clock", "leftovers"):
            yield _finding(check, getattr(probe, check))
        if isinstance(backend, HasRules):
            yield from _rules(backend)
        yield _finding("clean", probe.clean)
    finally:
        probe.clear()


def _finding(check: str, ask: Callable[[], Finding | str]) -> Finding:
    try:
        seen = ask()
    except Broken as broken:
        return Finding(check, Verdict.fail, broken.seen, broken.remedy)
    except LogError as error:
        return Finding(
            check, Verdict.fail, str(error), _MEANINGS.get(check, "the store does not meet the requirements of an archive"), error
        )
    return seen if isinstance(seen, Finding) else Finding(check, Verdict.ok, seen)


_HARMS = {
    Harm.loses: (Verdict.fail, "archived data would be lost for good: take the archive's prefix out of the rule"),
    Harm.hides: (Verdict.warn, "reads would fail until objects are restored: take the archive's prefix out of the rule"),
    Harm.costs: (Verdict.warn, "add such a rule to the bucket's lifecycle, or sweep the archive from time to time"),
    Harm.unknown: (Verdict.warn, "check whether a lifecycle rule deletes or moves objects of the archive"),
}


def _rules(backend: HasRules) -> Iterator[Finding]:
    try:
        rules = [*backend.rules()]
    except LogError as error:
        yield Finding("bucket", Verdict.warn, str(error), _HARMS[Harm.unknown][1], error)
        return
    if not rules:
        yield Finding("bucket", Verdict.ok, "no rule of the bucket deletes, hides or keeps what it should not")
    for rule in rules:
        verdict, remedy = _HARMS[rule.harm]
        yield Finding("bucket", verdict, rule.text, remedy)
