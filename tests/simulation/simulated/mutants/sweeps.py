"""Faults in sweeps."""

from dataclasses import replace
from typing import Any

from remote.manifest.pins import Pins
from simulated.mutants.registry import mutant
from tiering.sweep import collect, writes


@mutant
def sweep_without_a_claim() -> None:
    collect.claim = lambda *args: None


@mutant
def sweep_without_a_second_look() -> None:
    collect.still_unnamed = lambda due, *args: [*due.unclaimed]


@mutant
def sweep_versions_that_readers_have() -> None:
    collect.kept_versions = lambda versions, pinned, before_ms: 1


@mutant
def sweep_pages_of_writers_that_sleep() -> None:
    collect._writer_has_finished = lambda page, version: True


@mutant
def sweep_pins_that_are_in_force() -> None:
    pins_of = collect.pins_of

    def all_expired(*args: Any) -> Pins:
        pins = pins_of(*args)
        return replace(pins, live=(), expired=(*pins.live, *pins.expired))

    collect.pins_of = all_expired


@mutant
def sweep_records_of_writes_that_may_be_repeated() -> None:
    write_of = writes.write_of
    writes.write_of = lambda key: replace(of, write_id=f"_{0:032x}") if (of := write_of(key)) else None
    writes.is_forgettable = lambda key, pending, **options: options["committed"] and key not in pending


@mutant
def forget_that_a_write_was_given_up() -> None:
    writes.is_forgettable = lambda key, pending, **options: key not in pending


@mutant
def forget_writes_that_manifests_wait_for() -> None:
    writes._waited_for = lambda *args: set()


@mutant
def leave_uploads_that_were_not_completed() -> None:
    strays = collect.strays
    collect.strays = lambda *args: (piece for piece in strays(*args) if piece.upload is None)
