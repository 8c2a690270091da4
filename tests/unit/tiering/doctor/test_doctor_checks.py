"""Each promise that a store does not keep is found, named and explained; whatever comes, nothing is left behind."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from archive_fakes import (
    CountingIds,
    Door,
    FailsBefore,
    FixedClock,
    IgnoresCondition,
    KeepsNoChecksum,
    KeepsNoTime,
    LosesAnswer,
    MemoryStore,
    Nth,
    RunsBetween,
    verbs,
)

from local_log.errors import AlreadyExists, Corrupt, Invalid, Unavailable, Unknown
from remote.archive import create_archive
from remote.clock import SystemClock
from remote.store.api import AbandonedUpload, Body, BucketRule, Harm, ObjectMeta
from remote.store.open import open_backend, open_store
from tiering.doctor.checks import UPLOAD_AGE_MS, Finding, Verdict
from tiering.doctor.report import examine

EVERYTHING = ["reach", "archive", "create", "read", "delete", "range", "list", "condition", "race", "upload", "checksum", "clock"]
EVERYTHING += ["leftovers", "clean"]


def examined(store: Any, clock: Any = None) -> dict[str, Finding]:
    return {finding.check: finding for finding in examine(store, store, clock or FixedClock(), CountingIds())}


def not_ok(findings: dict[str, Finding]) -> dict[str, Verdict]:
    return {check: finding.verdict for check, finding in findings.items() if finding.verdict is not Verdict.ok}


@pytest.fixture
def memory() -> MemoryStore:
    """A store with an archive, another's object and what a probe of long ago has left."""
    store = MemoryStore()
    create_archive(store, FixedClock(), CountingIds())
    store.put_if_absent("topic/key", b"another's")
    store.put_if_absent("probe-of-long-ago", b"")
    return store


@pytest.fixture(autouse=True)
def _nothing_is_left_and_nothing_touched(memory: MemoryStore) -> Iterator[None]:
    before = dict(memory.objects)
    yield
    assert memory.objects == before


def test_a_good_store_passes_everything(memory: MemoryStore) -> None:
    findings = examined(memory)
    assert list(findings) == EVERYTHING
    assert not_ok(findings) == {}
    assert all(finding.seen and not finding.remedy and not finding.error for finding in findings.values())
    assert findings["archive"].seen == "there is an archive, which stays as it is"


def test_all_that_is_written_or_deleted_are_its_own_fresh_keys(memory: MemoryStore) -> None:
    memory.calls.clear()
    examined(memory)
    written = {call[1] for call in memory.calls if call[0] in ("put_if_absent", "upload", "delete")}
    assert written
    assert all(key.startswith(f"probe-{CountingIds().new_id()}-") for key in written)


def test_a_store_that_ignores_the_condition_fails(memory: MemoryStore) -> None:
    findings = examined(IgnoresCondition(memory))
    assert not_ok(findings) == dict.fromkeys(("condition", "race"), Verdict.fail)
    assert "If-None-Match is ignored" in findings["condition"].seen
    assert "two writers would overwrite each other" in findings["condition"].remedy


class IgnoresConditionOfUploads(Door):
    def upload(self, key: str, parts: Any, *, size: int, crc32c: int) -> None:
        self.inner.delete(key)
        super().upload(key, parts, size=size, crc32c=crc32c)


def test_a_store_that_honours_the_condition_of_puts_alone_fails(memory: MemoryStore) -> None:
    assert not_ok(examined(IgnoresConditionOfUploads(memory))) == {"upload": Verdict.fail}


class LooksThenWrites(Door):
    """Two writers in a row pass as they should, many at once all win."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.objects = inner.objects

    def put_if_absent(self, key: str, body: Body) -> None:
        if "race" not in key:
            super().put_if_absent(key, body)
        else:
            self.objects[key] = bytes(body)


def test_a_store_that_looks_before_it_writes_fails_the_race(memory: MemoryStore) -> None:
    findings = examined(LooksThenWrites(memory))
    assert not_ok(findings) == {"race": Verdict.fail}
    assert "of 32 writers of one key at once 32 heard that they had won" in findings["race"].seen


def test_a_winner_whose_object_is_anothers_fails_the_race(memory: MemoryStore) -> None:
    class Swaps(Door):
        def get(self, key: str) -> bytes:
            return super().get(key)[::-1] if "race" in key else super().get(key)

    assert not_ok(examined(Swaps(memory))) == {"race": Verdict.fail}


class Alters(Door):
    """Answers one verb with what `alter` makes of the answer."""

    def __init__(self, inner: MemoryStore, verb: str, alter: Callable[[Any], Any]) -> None:
        super().__init__(inner)
        self.verb = verb
        self.alter = alter

    def around(self, verb: str, key: str, call: Callable[[], Any]) -> Any:
        return self.alter(call()) if verb == self.verb else call()


@pytest.mark.parametrize(
    ("verb", "alter", "failing"),
    [
        ("get_range", lambda body: body[:-1], {"range", "upload"}),
        ("get_range", lambda body: body + b"more", {"range", "upload"}),
        ("get", lambda body: body[:-1] + b"?", {"read", "condition", "race", "upload", "archive"}),
        ("head", lambda meta: replace(meta, size=meta.size + 1), {"read", "upload"}),
        ("head", lambda meta: replace(meta, crc32c=meta.crc32c ^ 1), {"checksum"}),
        ("list", lambda found: found[::-1], {"list"}),
        ("list", lambda found: found[1:], {"list"}),
        ("list", lambda found: [], {"list"}),
        ("list", lambda found: [*found, ObjectMeta("probe-ghost", 0)], {"list", "clean"}),
    ],
)
def test_answers_that_are_not_what_was_written_fail(
    memory: MemoryStore, verb: str, alter: Callable[[Any], Any], failing: set[str]
) -> None:
    assert not_ok(examined(Alters(memory, verb, alter))) == dict.fromkeys(failing, Verdict.fail)


def test_a_range_past_the_end_that_is_given_fails(memory: MemoryStore) -> None:
    class Lenient(Door):
        def get_range(self, key: str, start: int, end: int) -> bytes:
            return self.inner.get(key)[start:end]

    assert not_ok(examined(Lenient(memory))) == {"range": Verdict.fail}


def test_an_object_that_outlives_its_deletion_fails_and_nothing_more_is_made(memory: MemoryStore) -> None:
    class Caches(Door):
        def __init__(self, inner: MemoryStore) -> None:
            super().__init__(inner)
            self.cached: dict[str, bytes] = {}

        def get(self, key: str) -> bytes:
            if key not in self.cached:
                self.cached[key] = super().get(key)
            return self.cached[key]

    findings = examined(Caches(memory))
    assert not_ok(findings) == {"delete": Verdict.fail}
    assert list(findings) == EVERYTHING[:5]


def test_what_a_store_does_not_tell_is_a_warning_or_a_failure_by_what_it_costs(memory: MemoryStore) -> None:
    findings = examined(KeepsNoChecksum(memory))
    assert not_ok(findings) == {"checksum": Verdict.warn}
    assert "read back once" in findings["checksum"].remedy
    assert not_ok(examined(KeepsNoTime(memory))) == dict.fromkeys(("clock", "leftovers"), Verdict.fail)


@pytest.mark.parametrize(
    ("off_ms", "verdict"),
    [
        (0, None),
        (5_000, None),
        (-5_000, None),
        (6_500, Verdict.warn),
        (-6_500, Verdict.warn),
        (3_600_000, Verdict.fail),
        (-3_600_000, Verdict.fail),
    ],
)
def test_a_clock_that_is_off_is_told_by_how_much(memory: MemoryStore, off_ms: int, verdict: Verdict | None) -> None:
    findings = examined(memory, FixedClock(memory.clock.now_ms() + off_ms))
    assert not_ok(findings) == ({"clock": verdict} if verdict else {})
    if verdict is Verdict.fail:
        assert findings["clock"].seen in (
            "the store's clock and this machine's are 3599 s apart",
            "the store's clock and this machine's are 3600 s apart",
        )
        assert "set this machine's clock" in findings["clock"].remedy


def test_uploads_that_broke_off_long_ago_are_counted(memory: MemoryStore) -> None:
    now_ms = memory.clock.now_ms()
    memory.uploads = [AbandonedUpload("a", "1", now_ms - UPLOAD_AGE_MS - 1), AbandonedUpload("a", "2", now_ms - UPLOAD_AGE_MS)]
    findings = examined(memory)
    assert not_ok(findings) == {"leftovers": Verdict.warn}
    assert findings["leftovers"].seen.startswith("1 uploads")
    assert not_ok(examined(FailsBefore(memory, Invalid("403"), Nth("abandoned_uploads")))) == {"leftovers": Verdict.warn}


# errors


@pytest.mark.parametrize("error", [Unavailable("no answer"), Invalid("403; check the credentials")], ids=repr)
@pytest.mark.parametrize(
    ("verb", "last"), [("list", "reach"), ("put_if_absent", "create"), ("delete", "delete"), ("get_range", "clean")]
)
def test_an_error_of_the_store_is_a_line_and_the_last_where_the_rest_depends_on_it(
    memory: MemoryStore, error: Exception, verb: str, last: str
) -> None:
    findings = examined(FailsBefore(memory, error, Nth(verb, 1)))
    failed = [finding for finding in findings.values() if finding.verdict is Verdict.fail]
    assert failed[0].error is error
    assert failed[0].seen == str(error)
    assert failed[0].remedy
    assert list(findings)[-1] == last


@pytest.mark.parametrize("verb", ["put_if_absent", "upload", "delete", "get", "list"])
@pytest.mark.slow
def test_whatever_goes_wrong_in_the_midst_nothing_is_left(memory: MemoryStore, verb: str) -> None:
    door = Door(memory)
    examined(door)
    count = verbs(door.calls).count(verb)
    assert count > 0
    for number in range(1, count + 1):
        if 20 < number < count - 5 and number % 9:
            continue  # one of many puts in the race
        when = Nth(verb, number)
        findings = examined(FailsBefore(memory, Unavailable("no answer"), when))
        assert next(iter(findings)) == "reach"
        assert when.seen >= number
        assert Verdict.fail in not_ok(findings).values()


@pytest.mark.parametrize("number", [1, 3, 10])
def test_a_put_whose_answer_is_lost_is_cleaned_up_too(memory: MemoryStore, number: int) -> None:
    findings = examined(LosesAnswer(memory, Nth("put_if_absent", number)))
    assert isinstance(next(f.error for f in findings.values() if f.error), Unknown)


def test_an_archive_that_cannot_be_read_is_a_line_and_stays(memory: MemoryStore) -> None:
    sound = memory.objects["archive.json"]
    for body, error in ((b"{", Corrupt), (b'{"format": {"major": 9, "minor": 0}}', Invalid)):
        memory.objects["archive.json"] = body
        findings = examined(memory)
        assert not_ok(findings) == {"archive": Verdict.fail}
        assert isinstance(findings["archive"].error, error)
    memory.objects["archive.json"] = sound


def test_a_bucket_that_vanishes_in_the_midst_is_told_line_by_line(s3_client: Any, s3_bucket: str) -> None:
    url = f"s3://{s3_bucket}/prefix"
    found = examine(open_store(url), open_backend(url), SystemClock(), CountingIds())
    for finding in itertools.takewhile(lambda finding: finding.check != "delete", found):
        assert finding.verdict is Verdict.ok
    s3_client.delete_bucket(Bucket=s3_bucket)
    rest = [*found]
    assert {finding.verdict for finding in rest if finding.check != "bucket"} == {Verdict.fail}
    assert all("create the bucket" in finding.seen for finding in rest if finding.error)


def test_examining_that_is_given_up_leaves_nothing(memory: MemoryStore) -> None:
    for number in range(1, len(EVERYTHING) + 1):
        found = examine(memory, memory, FixedClock(), CountingIds())
        for _ in range(number):
            next(found)
        found.close()


def test_somebody_who_takes_a_probes_key_is_not_written_over(memory: MemoryStore) -> None:
    taken = f"probe-{CountingIds().new_id()}-first"
    findings = examined(RunsBetween(memory, {3: lambda: memory.put_if_absent(taken, b"theirs")}))
    assert isinstance(findings["create"].error, AlreadyExists)


# the bucket's own rules


class WithRules(Door):
    def __init__(self, inner: MemoryStore, *rules: BucketRule) -> None:
        super().__init__(inner)
        self.given = rules

    def rules(self) -> Iterator[BucketRule]:
        return iter(self.given)


@pytest.mark.parametrize(
    ("harm", "verdict"),
    [(Harm.loses, Verdict.fail), (Harm.hides, Verdict.warn), (Harm.costs, Verdict.warn), (Harm.unknown, Verdict.warn)],
)
def test_a_rule_of_the_bucket_is_judged_by_its_harm(memory: MemoryStore, harm: Harm, verdict: Verdict) -> None:
    findings = examined(WithRules(memory, BucketRule(harm, "a rule")))
    assert not_ok(findings) == {"bucket": verdict}
    assert findings["bucket"].seen == "a rule"
    assert findings["bucket"].remedy


def test_a_bucket_without_such_rules_is_well(memory: MemoryStore) -> None:
    assert examined(WithRules(memory))["bucket"].verdict is Verdict.ok


def lifecycle(**rule: Any) -> dict[str, Any]:
    return {"Rules": [{"ID": "named", "Status": "Enabled", "Filter": {"Prefix": ""}, **rule}]}


FREES = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}


@pytest.mark.parametrize(
    ("rule", "harms"),
    [
        (None, {Harm.costs}),
        ({**FREES}, set()),
        ({**FREES, "Status": "Disabled"}, {Harm.costs}),
        ({**FREES, "Filter": {"Prefix": "elsewhere/"}}, {Harm.costs}),
        ({**FREES, "Filter": {"Prefix": "archive/"}}, set()),
        ({**FREES, "Expiration": {"Days": 30}}, {Harm.loses}),
        ({**FREES, "Filter": {"Prefix": "archive/topic/"}, "Expiration": {"Days": 30}}, {Harm.loses}),
        ({**FREES, "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}]}, {Harm.hides}),
        ({**FREES, "Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}]}, set()),
    ],
)
def test_what_a_buckets_lifecycle_does_to_the_archive_is_told(
    s3_client: Any, s3_bucket: str, rule: dict[str, Any] | None, harms: set[Harm]
) -> None:
    if rule is not None:
        s3_client.put_bucket_lifecycle_configuration(Bucket=s3_bucket, LifecycleConfiguration=lifecycle(**rule))
    store: Any = open_backend(f"s3://{s3_bucket}/archive")
    assert {rule.harm for rule in store.rules()} == harms


def test_versions_that_nobody_ends_are_told(s3_client: Any, s3_bucket: str) -> None:
    store: Any = open_backend(f"s3://{s3_bucket}/archive")
    s3_client.put_bucket_versioning(Bucket=s3_bucket, VersioningConfiguration={"Status": "Enabled"})
    assert any("old versions" in rule.text for rule in store.rules())
    ends = {**FREES, "NoncurrentVersionExpiration": {"NoncurrentDays": 7}}
    s3_client.put_bucket_lifecycle_configuration(Bucket=s3_bucket, LifecycleConfiguration=lifecycle(**ends))
    assert [*store.rules()] == []
