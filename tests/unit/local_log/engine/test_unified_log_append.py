"""What an append is refused for, what of it is taken, and what a leader makes of it."""

import random  # noqa: TID251  # seeded
from contextlib import suppress
from pathlib import Path

import pytest
from hand_made import CONTROL, GZIP, TRANSACTIONAL, batch, message, record
from logs_at_work import Log, batch_of, offsets_of, settings, values_of
from small_logs import NOW, marker

from local_log.engine.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidRecord,
    MessageTooLarge,
    OffsetsOutOfOrder,
    OutOfOrderSequenceNumber,
    RecordListTooLarge,
    Refused,
    UnexpectedAppendOffset,
    UnknownServerError,
)
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.filenames import LOG, offset_file


@pytest.fixture
def at(tmp_path: Path) -> Log:
    return Log(tmp_path / "t-0")


def stored(at: Log) -> bytes:
    return at.log.read(at.log.log_start_offset, 1 << 20).records


# A leader's append


def test_a_leader_writes_its_epoch_into_every_batch(at: Log) -> None:
    at.log.epochs.assign(72, 0)
    for number in range(50):
        at.log.append_as_leader(batch_of(f"{number}", leader_epoch=5), 72)
    assert {b.leader_epoch for b in memory_batches(stored(at))} == {72}
    assert at.log.epochs.entries == [EpochEntry(72, 0)]


def test_a_batch_of_more_than_the_greatest_message_is_refused(tmp_path: Path) -> None:
    small, large = batch_of("You", "bethe"), batch_of("change (I need more bytes)", "More padding")
    at = Log(tmp_path, settings(max_message_bytes=len(large) - 1))
    at.log.append_as_leader(small, 0)
    with pytest.raises(MessageTooLarge):
        at.log.append_as_leader(large, 0)
    assert values_of(stored(at)) == [(0, "You"), (1, "bethe")]


def test_a_follower_takes_what_its_leader_took_however_large(tmp_path: Path) -> None:
    large = batch_of("change (I need more bytes)", "More padding", offset=5)
    at = Log(tmp_path, settings(max_message_bytes=len(large) - 1))
    at.follow(batch_of("You", "bethe"), large)
    assert at.log.log_end_offset == 7


def test_batches_that_do_not_fit_into_a_segment_are_refused(tmp_path: Path) -> None:
    records = batch_of("You", "bethe")
    at = Log(tmp_path, settings(segment_bytes=len(records) - 1))
    with pytest.raises(RecordListTooLarge):
        at.log.append_as_leader(records, 0)
    assert at.log.log_end_offset == 0


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_refused(at: Log, codec: int) -> None:
    for records in (batch(attributes=codec, section=b"?"), message(0, attributes=codec), message(1, attributes=codec)):
        with pytest.raises(UnknownServerError, match=f"codec {codec}"):
            at.log.append_as_leader(records, 0)
        with pytest.raises(UnknownServerError, match=f"codec {codec}"):
            at.follow(records)
    assert at.log.log_end_offset == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_a_leader_writes_older_messages_as_one_record_batch(at: Log, magic: int) -> None:
    at.log.append_as_leader(batch_of("first"), 7)
    info = at.log.append_as_leader(message(magic, b"one") + message(magic, b"two"), 7)
    assert (info.first_offset, info.last_offset) == (1, 2)
    assert [(b.magic, b.leader_epoch, b.base_offset, b.last_offset) for b in memory_batches(stored(at))] == [
        (2, 7, 0, 0),
        (2, 7, 1, 2),
    ]
    assert values_of(stored(at)) == [(0, "first"), (1, "one"), (2, "two")]
    assert at.log.epochs.entries == [EpochEntry(7, 0)]


@pytest.mark.parametrize(("keys", "codec", "row"), [((None, b"k"), 0, 0), ((None,), 0, 0), ((b"k", None), GZIP, 1)])
def test_a_compacted_topic_takes_no_record_without_a_key(
    tmp_path: Path, keys: tuple[bytes | None, ...], codec: int, row: int
) -> None:
    at = Log(tmp_path, settings(cleanup_policy="compact"))
    with pytest.raises(InvalidRecord, match="has no key, which a compacted topic needs") as refused:
        at.log.append_as_leader(batch_of(*(["v"] * len(keys)), keys=keys, codec=codec), 0)
    assert [error.row for error in refused.value.record_errors] == [row]
    assert at.log.log_end_offset == 0


@pytest.mark.parametrize(("keys", "codec"), [((b"a",), 0), ((b"a", b"b"), 0), ((b"a",), GZIP)])
def test_a_compacted_topic_takes_records_with_keys(tmp_path: Path, keys: tuple[bytes | None, ...], codec: int) -> None:
    at = Log(tmp_path, settings(cleanup_policy="compact"))
    at.log.append_as_leader(batch_of(*(["v"] * len(keys)), keys=keys, codec=codec), 0)
    assert at.log.log_end_offset == len(keys)


# Idempotent producers


def numbered(sequence: int, count: int = 1, *, producer: int = 1, epoch: int = 0, offset: int = 0) -> bytes:
    return batch_of(*["v"] * count, producer=producer, epoch=epoch, sequence=sequence, offset=offset)


def test_one_of_the_last_five_batches_that_comes_again_is_answered_and_not_appended(at: Log) -> None:
    for sequence in range(6):
        at.log.append_as_leader(numbered(sequence), 0)
    first = at.log.append_as_leader(numbered(6, count=3), 0)
    again = at.log.append_as_leader(numbered(6, count=3), 0)
    assert (first.first_offset, first.last_offset, first.is_duplicate) == (6, 8, False)
    assert (again.first_offset, again.last_offset, again.is_duplicate) == (6, 8, True)
    with pytest.raises(OutOfOrderSequenceNumber):
        at.log.append_as_leader(numbered(7, count=2), 0)  # a part of that batch
    fourth = at.log.append_as_leader(numbered(2), 0)
    assert (fourth.first_offset, fourth.is_duplicate) == (2, True)
    with pytest.raises(OutOfOrderSequenceNumber):
        at.log.append_as_leader(numbered(1), 0)
    infos = [at.log.append_as_leader(numbered(9), 0) for _ in range(2)]
    assert [(info.first_offset, info.last_offset, info.is_duplicate) for info in infos] == [(9, 9, False), (9, 9, True)]
    assert at.log.log_end_offset == 10


def test_a_batch_that_leaves_a_gap_in_the_sequence_is_refused(at: Log) -> None:
    at.log.append_as_leader(numbered(0), 0)
    with pytest.raises(OutOfOrderSequenceNumber):
        at.log.append_as_leader(numbered(2), 0)
    assert at.log.log_end_offset == 1


def test_a_batch_of_an_older_epoch_of_its_producer_is_refused(at: Log) -> None:
    at.log.append_as_leader(numbered(0, epoch=1), 0)
    with pytest.raises(InvalidProducerEpoch):
        at.log.append_as_leader(numbered(0, epoch=0), 0)


def test_a_follower_takes_a_batch_again_that_its_leader_took_twice(at: Log) -> None:
    at.follow(numbered(0, count=2), numbered(0, count=2, offset=2))
    assert at.log.log_end_offset == 4


def test_one_append_may_hold_batches_of_several_producers(at: Log) -> None:
    records = b"".join(numbered(0, producer=producer, offset=producer - 1) for producer in (1, 2, 3, 4))
    at.log.append_as_follower(records, 0)
    at.log.flush()
    assert stored(at) == records
    assert set(at.log.producers.producers) == {1, 2, 3, 4}


def test_one_append_may_hold_batches_of_several_producers_with_repetitions(at: Log) -> None:
    sequences = ((1, 0), (2, 0), (1, 1), (2, 1), (1, 1))
    made = (numbered(sequence, producer=producer, offset=offset) for offset, (producer, sequence) in enumerate(sequences))
    at.log.append_as_follower(b"".join(made), 0)
    assert at.log.log_end_offset == 5
    assert [b.last_offset for b in at.log.producers.producers[1].batches] == [0, 2, 4]


def test_the_log_says_who_its_producers_are_and_what_they_are_at(at: Log) -> None:
    def state(producer: int) -> tuple[int, int, int | None, int]:
        found = at.log.producers.producers[producer]
        return found.epoch, found.last_sequence, found.txn_first_offset, found.coordinator_epoch

    at.log.append_as_leader(batch_of(*"abcde", producer=1, epoch=5, sequence=0, transactional=True), 0)
    assert state(1) == (5, 4, 0, -1)
    at.log.append_as_leader(marker(0, 1, commit=True, epoch=5, coordinator_epoch=15), 0, Origin.COORDINATOR)
    assert state(1) == (5, 4, None, 15)
    at.log.append_as_leader(numbered(0, count=3, producer=2, epoch=5), 0)
    assert state(2) == (5, 2, None, -1)


# A follower's append


def test_a_follower_takes_no_batch_of_a_later_epoch_than_that_of_the_leader_that_it_asked(at: Log) -> None:
    at.log.append_as_follower(batch_of(*"abcdefghij", leader_epoch=1) + batch_of(*"klm", offset=10, leader_epoch=2), 1)
    assert at.log.log_end_offset == 10
    assert at.log.epochs.latest_epoch == 1


def test_a_follower_refuses_what_starts_below_the_logs_end(at: Log) -> None:
    at.follow(batch_of("a", "b"))
    with pytest.raises(UnexpectedAppendOffset):
        at.follow(batch_of("c", offset=1))
    assert at.log.log_end_offset == 2


def test_a_follower_makes_time_index_entries(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=10_000, index_interval_bytes=1, segment_index_bytes=4096))
    at.follow(*(batch_of(f"{i}", offset=100 + i, time=NOW + i) for i in range(100)))
    (segment,) = at.log.local.segments
    assert len(segment.time_index) == 99
    assert segment.time_index.last_entry == (NOW + 99, 199)


SOUND = batch_of("one", "two")
NO_MARKER = batch(record(key=b"\0"), attributes=TRANSACTIONAL | CONTROL, producer_id=1, producer_epoch=0)


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(SOUND[:11], None, id="less than a size"),
        pytest.param(SOUND[:16], None, id="no magic"),
        pytest.param(SOUND[:-1], None, id="torn"),
        pytest.param(SOUND[:8] + bytes(4) + SOUND[12:], CorruptMessage, id="a size of 0"),
        pytest.param(SOUND[:8] + b"\xff\xff\xff\xff" + SOUND[12:], CorruptMessage, id="a size below 0"),
        pytest.param(SOUND[:8] + (48).to_bytes(4, "big") + SOUND[12:], CorruptMessage, id="a size below a header's"),
        pytest.param(SOUND[:16] + b"\xff" + SOUND[17:], CorruptMessage, id="magic below 0"),
        pytest.param(SOUND[:16] + b"\x03" + SOUND[17:], CorruptMessage, id="magic of the future"),
        pytest.param(SOUND[:17] + bytes(4) + SOUND[21:], CorruptMessage, id="another CRC"),
        pytest.param(message(1)[:12] + bytes(4) + message(1)[16:], CorruptMessage, id="an older message, another CRC"),
        pytest.param(NO_MARKER, InvalidRecord, id="a control batch without a marker"),
        pytest.param(SOUND + batch_of("x", offset=1), OffsetsOutOfOrder, id="offsets that do not grow"),
    ],
)
def test_an_append_of_something_else_changes_nothing(at: Log, records: bytes, problem: type[Refused] | None) -> None:
    if problem is None:
        at.follow(records)
    else:
        with pytest.raises(problem):
            at.follow(records)
    assert at.log.log_end_offset == 0
    assert (at.folder / offset_file(0, LOG)).stat().st_size == 0


def test_an_append_of_random_bytes_is_refused_or_holds_no_batch(at: Log) -> None:
    for seed in range(300):
        drawn = random.Random(seed)
        records = drawn.randbytes(drawn.randrange(1, 129))
        with suppress(CorruptMessage):
            assert at.log.append_as_follower(records, 1 << 30).valid_bytes == 0
    assert at.log.log_end_offset == 0


def test_what_follows_the_last_whole_batch_is_left_out(at: Log) -> None:
    at.follow(SOUND + SOUND[:30])
    assert stored(at) == SOUND


def test_an_older_message_clears_the_leader_epochs(at: Log) -> None:
    at.follow(batch_of("a", leader_epoch=3))
    assert at.log.epochs.latest_epoch == 3
    at.follow(message(1, offset=1))
    assert at.log.epochs.entries == []
    assert offsets_of(stored(at)) == [0, 1]


def test_a_client_that_gives_offsets_is_refused(at: Log) -> None:
    with pytest.raises(InvalidRecord, match="base offset 7"):
        at.log.append_as_leader(batch(record(), base_offset=7), 0)
