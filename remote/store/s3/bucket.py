"""What a bucket's own rules do to an archive in it: versions, and what its lifecycle deletes or puts away."""

from collections.abc import Callable, Iterator
from typing import Any

from local_log.errors import Invalid, NotFound
from remote.store.api import BucketRule, Harm
from remote.store.s3.client import translated

_frozen = ("GLACIER", "DEEP_ARCHIVE")
"""Storage classes whose objects have to be restored before they can be read."""


def bucket_rules(client: Any, bucket: str, prefix: str, url: str) -> Iterator[BucketRule]:
    """One or more for what we may read. Raises Unavailable."""
    versioning, hindrance = _asked(lambda: client.get_bucket_versioning(Bucket=bucket), url)
    lifecycle, no_lifecycle = _asked(lambda: client.get_bucket_lifecycle_configuration(Bucket=bucket), url)
    if versioning is None:
        yield BucketRule(Harm.unknown, f"whether the bucket keeps versions cannot be read: {hindrance}")
    if lifecycle is None:
        yield BucketRule(Harm.unknown, f"the bucket's lifecycle cannot be read: {no_lifecycle}")
        return
    rules = [r for r in lifecycle.get("Rules", ()) if r.get("Status") == "Enabled" and _concerns(r, prefix)]
    if versioning and versioning.get("Status") == "Enabled" and not any("NoncurrentVersionExpiration" in r for r in rules):
        yield BucketRule(
            Harm.costs, "the bucket keeps old versions, and no rule expires them: deleted objects still cost storage"
        )
    if not any("AbortIncompleteMultipartUpload" in r for r in rules):
        yield BucketRule(Harm.costs, "no rule of the bucket aborts incomplete uploads: their parts cost storage")
    for rule in rules:
        name = f"the bucket's rule {rule.get('ID', '')!r}"
        if {"Days", "Date"} & rule.get("Expiration", {}).keys():
            yield BucketRule(Harm.loses, f"{name} deletes objects by age: it will delete archived segments")
        if any(t.get("StorageClass") in _frozen for t in rule.get("Transitions", ())):
            yield BucketRule(Harm.hides, f"{name} moves objects to a storage class that cannot be read directly")


def _concerns(rule: dict[str, Any], prefix: str) -> bool:
    chosen = rule.get("Filter", {})
    theirs = rule.get("Prefix") or chosen.get("Prefix") or chosen.get("And", {}).get("Prefix") or ""
    return prefix.startswith(theirs) or str(theirs).startswith(prefix)


def _asked(ask: Callable[[], dict[str, Any]], url: str) -> tuple[dict[str, Any] | None, str]:
    """The answer, {} where there is none; or None and why we may not know."""
    try:
        with translated(url, "the bucket"):
            return ask(), ""
    except NotFound:
        return {}, ""
    except Invalid as error:
        return None, str(error)
