"""Where a log and its archive part, by their leader epochs and ends."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made_manifests import entry, manifest

from local_log.formats.checkpoints import EpochEntry, epochs_before
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.ranges import uncovered
from remote.keys import is_topic_id
from remote.manifest.divergence import fork_offset, is_another_history, is_older, kept_topic_id, others_below_start
from remote.manifest.gaps import Gap
from remote.manifest.model import Manifest
from remote.manifest.truncation import truncation

Pairs = list[tuple[int, int]]


def epochs(pairs: Pairs) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(*pair) for pair in pairs)


def archived(pairs: Pairs, end: int, gap: tuple[int, int] | None = None) -> Manifest:
    """An archive from offset 0 on, with nothing in the gap."""
    parts = uncovered([gap] if gap else [], 0, end)
    gaps = tuple(Gap(*missing, "", 7) for missing in uncovered(parts, 0, end))
    return manifest(*(entry(*part) for part in parts), leader_epochs=epochs(pairs), gaps=gaps, topic_id="B" * 22)


@pytest.mark.parametrize(
    ("ours", "theirs", "fork"),
    [
        pytest.param([(0, 0)], [(0, 0), (1, 60)], 60, id="a new leader that lacked the end"),
        pytest.param([(0, 0), (1, 50)], [(0, 0), (2, 50)], 50, id="two leaders one after the other at one offset"),
        pytest.param([(0, 0), (1, 50)], [(0, 0), (2, 70)], 50, id="a leader of whom the new one has nothing"),
        pytest.param([(0, 0), (1, 50), (2, 80)], [(0, 0), (1, 50), (3, 90)], 80, id="a leader before the last"),
        pytest.param([(0, 0), (2, 50), (4, 80)], [(0, 0), (4, 80)], 50, id="an epoch less"),
        pytest.param([(0, 0), (2, 50)], [(0, 0), (2, 40)], 40, id="an epoch that starts earlier"),
        pytest.param([(0, 0), (1, 50)], [(0, 60), (2, 80)], 50, id="the log starts above the fork"),
        pytest.param([(0, 0), (1, 50)], [(5, 70)], 70, id="they have nothing in common"),
    ],
)
def test_the_fork_is_where_the_epochs_begin_to_differ(ours: Pairs, theirs: Pairs, fork: int) -> None:
    assert fork_offset(archived(ours, 100), epochs(theirs), 200) == fork


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param([(0, 0), (1, 50)], [(0, 0), (1, 50)], id="the same"),
        pytest.param([(0, 0), (1, 50)], [(0, 0), (1, 70)], id="a log that compaction has left nothing of an epoch's beginning"),
        pytest.param([(0, 0), (1, 50)], [(1, 60), (2, 100)], id="a log that goes on, and starts later"),
        pytest.param([(0, 0)], [], id="nobody can tell"),
    ],
)
def test_where_they_are_of_one_history_there_is_no_fork(ours: Pairs, theirs: Pairs) -> None:
    assert fork_offset(archived(ours, 100), epochs(theirs), 200) is None


def test_an_epoch_that_lies_where_nothing_is_archived_is_no_fork() -> None:
    some = archived([(0, 0), (4, 70)], 100, (50, 70))
    assert fork_offset(some, epochs([(0, 0), (2, 50), (4, 60)]), 200) is None
    assert fork_offset(some, epochs([(0, 0), (2, 50), (5, 60)]), 200) == 50


def test_an_epoch_from_later_on_is_another_history_of_a_topic_without_an_id() -> None:
    some = replace(archived([(0, 0), (1, 50)], 100), topic_id=ZERO_TOPIC_ID)
    assert fork_offset(some, epochs([(0, 0), (1, 70)]), 200) == 50


@pytest.mark.parametrize(
    ("ours", "theirs", "log_start", "others"),
    [
        pytest.param([(0, 80)], [(0, 0), (1, 50)], 0, (50, 80), id="a new leader that lacked the end of what expired"),
        pytest.param([(0, 80)], [(0, 0), (1, 50)], 60, (60, 80), id="of which its log has only a part"),
        pytest.param([(0, 80)], [(0, 0), (1, 50)], 80, None, id="of which its log has nothing"),
        pytest.param([(2, 80)], [(0, 0), (3, 90)], 0, (0, 80), id="the log lacks the only epoch that is known there"),
        pytest.param([(0, 80)], [(0, 0), (1, 90)], 0, None, id="they part above the start"),
    ],
)
def test_other_records_below_the_start_begin_where_the_last_epoch_in_common_ends_or_anywhere_without_one(
    ours: Pairs, theirs: Pairs, log_start: int, others: tuple[int, int] | None
) -> None:
    some = manifest(entry(80, 100), leader_epochs=epochs(ours), log_start_offset=80, topic_id="B" * 22)
    fork = fork_offset(some, epochs(theirs), 200)
    assert fork is not None
    assert others_below_start(some, fork, epochs(theirs), log_start) == others


def test_of_a_topic_without_an_id_nothing_is_known_below_the_start() -> None:
    some = manifest(entry(80, 100), leader_epochs=epochs([(0, 80)]), log_start_offset=80, topic_id=ZERO_TOPIC_ID)
    assert others_below_start(some, 80, epochs([(0, 0), (1, 50)]), 0) == (0, 80)


histories = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=5).map(
    lambda pairs: list(zip(sorted({e for e, _ in pairs}), sorted(s for _, s in pairs), strict=False))
)


missing = st.none() | st.tuples(st.integers(0, 39), st.integers(1, 15)).map(lambda of: (of[0], of[0] + of[1]))


@given(histories, histories, st.integers(1, 40), st.integers(1, 40), missing)
def test_whatever_contradicts_has_a_fork_after_which_it_contradicts_no_more(
    ours: Pairs, theirs: Pairs, archive_end: int, log_end: int, gap: tuple[int, int] | None
) -> None:
    assume(gap is None or gap[1] < archive_end)
    if gap is not None:  # its epochs are known from its start on
        ours = [(ours[0][0], 0), *ours[1:]]
    some = archived([(e, s) for e, s in ours if s < archive_end], archive_end, gap)
    lineage = epochs_before(epochs(theirs), log_end)
    assume(some.leader_epochs and lineage and is_another_history(some, lineage, log_end))
    fork = fork_offset(some, lineage, log_end)
    assert fork is not None
    assert 0 <= fork <= archive_end
    after = truncation(some, fork, lambda ref: (), lambda: "").applied(some, "kept", 9)
    assert not is_another_history(after, lineage, log_end)


def test_a_log_without_the_archives_latest_epoch_is_the_older_one() -> None:
    some = archived([(0, 0), (3, 50)], 100)
    assert is_older(some, epochs([(0, 0), (2, 60)]))
    assert not is_older(some, epochs([(0, 0), (4, 60)]))


def test_the_kept_history_has_an_id_of_its_own_that_all_who_keep_it_agree_on() -> None:
    some = archived([(0, 0), (1, 50)], 100)
    ids = {kept_topic_id(replace(some, partition=n), fork) for n in range(20) for fork in range(50, 70)}
    assert len(ids) == 400
    assert all(map(is_topic_id, ids))
    assert kept_topic_id(some, 50) == kept_topic_id(replace(some, version=7, put_id="other"), 50)
