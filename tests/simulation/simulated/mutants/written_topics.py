"""Faults in direct writes."""

from dataclasses import replace
from typing import Any

from remote import archive
from remote.direct_write import commit as direct_write
from remote.direct_write import topic
from remote.manifest import store as manifests
from remote.manifest import writes
from remote.manifest.write_record import Decision, decide
from simulated.mutants.registry import mutant


@mutant
def see_writes_that_are_pending() -> None:
    def resolved(store: Any, manifest: Any) -> Any:
        return writes.resolved(manifest, manifest.committed_at_ms) if manifest.pending else manifest

    archive.as_decided = resolved


@mutant
def take_up_a_write_that_was_given_up() -> None:
    manifests.ended = lambda store, clock, manifest, by: writes.resolved(manifest, manifest.committed_at_ms)


@mutant
def commit_a_write_again() -> None:
    direct_write.committed_before = lambda store, write: None


@mutant
def write_to_a_new_topic_that_a_sweep_has_claimed() -> None:
    topic._newest_of = lambda *args: {}


@mutant
def decide_before_all_partitions_have_the_write() -> None:
    attempt = direct_write._Commit.attempt

    def decided_first(self: Any, seen: Any, entries: Any, attempt_id: str) -> Any:
        decision = Decision(True, self.clock.now_ms(), self.write.by)
        decide(self.store, self.clock, self.write.home.attempt(attempt_id), decision)
        return attempt(self, seen, entries, attempt_id)

    direct_write._Commit.attempt = decided_first


@mutant
def give_up_a_write_that_was_decided() -> None:
    manifests.ended = lambda store, clock, manifest, by: writes.resolved(manifest, None)


@mutant
def write_at_an_end_that_others_have_moved() -> None:
    direct_write.intended = lambda manifest, pending, expected: replace(manifest, pending=pending)
