"""The offsets of a named run, resolved once: a run of the same name reads the same, whatever was archived or deleted since.

_tiering/runs/<digest of the run's name>.json     in the job's target; the first one put stays
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from local_log.errors import Corrupt, Newer, NotFound
from remote.manifest.numbers import whole
from remote.store.api import ObjectStore
from spark_jobs.common.offset_ranges import OffsetRanges, parse
from spark_jobs.common.once import put_once
from spark_jobs.common.target import HIDDEN
from spark_jobs.errors import OptionError

RUNS = f"{HIDDEN}runs/"
FORMAT = 1

RunQuery = Mapping[str, Any]
"""The options of the run as JSON: a run with other options must not get its offsets."""


def key_of(run: str) -> str:
    """Where the offsets of a run are kept; its name may be anything."""
    return f"{RUNS}{hashlib.sha256(run.encode()).hexdigest()[:32]}.json"


def run_offsets(
    store: ObjectStore, run: str, asked: RunQuery, resolve: Callable[[], OffsetRanges], *, keep: bool = True
) -> OffsetRanges:
    """What the first run of this name resolved; for the first one, what `resolve` returns. Nothing is stored without `keep`.

    Raises OptionError where that run was asked for something else, what `resolve` raises, Corrupt, Newer, Unavailable.
    """
    key = key_of(run)
    try:
        body = store.get(key)
    except NotFound:
        offsets = resolve()
        if not keep:
            return offsets
        kept = {"format": FORMAT, "run": run, "asked": asked, "offsets": offsets}
        body = put_once(store, key, json.dumps(kept, indent=1).encode() + b"\n")
    return _offsets(body, key, run, asked)


def _offsets(body: bytes, key: str, run: str, asked: RunQuery) -> OffsetRanges:
    try:
        kept = json.loads(body)
        stated, was = whole(kept["format"], "format"), dict(kept["asked"])
        offsets = parse(json.dumps(kept["offsets"])) if stated == FORMAT else {}
    except (ValueError, RecursionError, TypeError, KeyError, OptionError) as e:
        raise Corrupt(f"expected the offsets of run {run!r} ({e!r}); delete it, and the run resolves them again", file=key) from e
    if stated != FORMAT:
        raise Newer(f"{key} has format {stated}, and this version reads {FORMAT}; upgrade")
    differing = [name for name in {*was, *asked} if was.get(name) != asked.get(name)]
    if differing:
        name = min(differing)
        raise OptionError(f"run {run!r} was asked for {name} {was.get(name)!r}, not {asked.get(name)!r}; give another --run")
    return offsets
