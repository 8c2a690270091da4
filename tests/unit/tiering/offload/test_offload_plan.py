"""What is due: segments against the last stable offset and the manifest."""

import pytest
from made_manifests import entry, manifest

from tiering.offload.plan import Action, Decision, LocalSegment, plan_offload

NOTHING = manifest(version=0)
SOME = manifest(entry(0, 10), entry(20, 30))
TRIMMED = manifest(entry(10, 20), log_start_offset=5)

COPY, KEEP, ARCHIVED = (Action.copy, ""), (Action.keep, "active"), (Action.archived, "archived")
BELOW = (Action.keep, "below the log start offset")


def past(last_stable_offset: int) -> tuple[Action, str]:
    return Action.keep, f"reaches past the last stable offset {last_stable_offset}"


@pytest.mark.parametrize(
    ("archived", "base_offset", "end_offset", "last_stable_offset", "due"),
    [
        (NOTHING, 0, 10, 100, COPY),
        (NOTHING, 0, 10, 10, COPY),
        (NOTHING, 0, 10, 9, past(9)),
        (NOTHING, 0, 10, 5, past(5)),
        (NOTHING, 0, 10, 0, past(0)),
        (NOTHING, 0, None, 100, KEEP),
        (NOTHING, 90, None, 100, KEEP),
        (SOME, 0, 10, 100, ARCHIVED),
        (SOME, 0, 10, 5, ARCHIVED),
        (SOME, 2, 8, 100, ARCHIVED),
        (SOME, 10, 20, 100, COPY),
        (SOME, 12, 18, 100, COPY),
        (SOME, 5, 15, 100, COPY),
        (SOME, 0, 30, 100, COPY),
        (SOME, 20, 30, 100, ARCHIVED),
        (SOME, 25, 35, 100, COPY),
        (SOME, 30, 40, 100, COPY),
        (SOME, 30, 40, 39, past(39)),
        (SOME, 10, 20, 15, past(15)),
        (SOME, 20, None, 100, KEEP),
        (TRIMMED, 0, 5, 100, BELOW),
        (TRIMMED, 0, 3, 100, BELOW),
        (TRIMMED, 0, 5, 0, BELOW),
        (TRIMMED, 0, 6, 100, COPY),
        (TRIMMED, 0, 10, 100, COPY),
        (TRIMMED, 10, 20, 100, ARCHIVED),
    ],
)
def test_a_segment_is_copied_when_inactive_stable_and_not_archived_yet(
    archived: object, base_offset: int, end_offset: int | None, last_stable_offset: int, due: tuple[Action, str]
) -> None:
    segment = LocalSegment(base_offset, end_offset)
    (decision,) = plan_offload((segment,), last_stable_offset, archived)  # type: ignore[arg-type]
    assert decision == Decision(segment, *due)


def test_a_trimmed_segment_whose_offsets_above_the_start_are_archived_is_archived() -> None:
    segment = LocalSegment(0, 20)
    (decision,) = plan_offload((segment,), 100, manifest(entry(0, 20), log_start_offset=5))
    assert decision.action is Action.archived


def test_there_is_a_decision_for_each_segment_in_order() -> None:
    segments = (*(LocalSegment(base, base + 10) for base in range(0, 50, 10)), LocalSegment(50, None))
    decisions = plan_offload(segments, 45, SOME)
    assert tuple(d.segment for d in decisions) == segments
    assert [d.action for d in decisions] == ["archived", "copy", "archived", "copy", "keep", "keep"]
    assert plan_offload((), 0, NOTHING) == ()


def test_where_no_offset_is_known_to_be_replicated_the_reason_says_why() -> None:
    decisions = plan_offload((LocalSegment(0, 10), LocalSegment(10, None)), 0, NOTHING, unproven="nobody knows")
    assert [(d.action, d.reason) for d in decisions] == [(Action.keep, "nobody knows"), KEEP]


def segments(text: str) -> tuple[LocalSegment, ...]:
    """A segment of ten offsets for each letter: f with batches, e emptied by compaction, a the active one."""
    found = [LocalSegment(at * 10, None if kind == "a" else at * 10 + 10, kind == "e") for at, kind in enumerate(text)]
    return tuple(found)


@pytest.mark.parametrize(
    ("local", "last_stable_offset", "copied"),
    [
        ("ffa", 20, [(0, 10), (10, 20)]),
        ("fefa", 30, [(0, 20), (20, 30)]),
        ("feefa", 40, [(0, 30), (30, 40)]),
        ("feea", 30, [(0, 30)]),
        ("feea", 29, [(0, 20)]),
        ("feea", 19, [(0, 10)]),
        ("efa", 20, [(10, 20)]),
        ("eea", 20, []),
        ("fefea", 40, [(0, 20), (20, 40)]),
    ],
)
def test_a_segment_reaches_over_those_that_compaction_has_emptied(
    local: str, last_stable_offset: int, copied: list[tuple[int, int]]
) -> None:
    decisions = plan_offload(segments(local), last_stable_offset, NOTHING)
    assert [d.segment.base_offset for d in decisions] == [s.base_offset for s in segments(local)]
    due = [d.segment for d in decisions if d.action is Action.copy]
    assert [(s.base_offset, s.end_offset) for s in due] == copied
    assert all(not s.is_empty for s in due)
