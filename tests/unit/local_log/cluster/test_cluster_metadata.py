"""What a broker's own metadata log says of topics, by what the broker itself has answered."""

from pathlib import Path

import pytest
from golden_logs import live, metadata_log

from local_log.cluster.image import ClusterImage, ImageBuilder
from local_log.cluster.metadata import read_cluster_image
from local_log.errors import Corrupt, NotFound
from local_log.formats.metadata_records import ConfigSet, LeaderNamed, TopicMade, TopicRemoved, TransactionMark
from local_log.os_disk import OsDisk

FOLDER = "__cluster_metadata-0"
LOG = "00000000000000000000.log"
BEHIND_THE_SNAPSHOT = 1_000
"""Bytes at the log's end, a few more than come after the newest snapshot: what is cut below changes nothing."""
OLDER, NEWER = "00000000000000000041-0000000001.checkpoint", "00000000000000000083-0000000002.checkpoint"
ID, OTHER = "A" * 21 + "Q", "B" * 21 + "Q"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A fresh log directory with the golden metadata log."""
    return metadata_log(tmp_path)


def image_of(logs: Path) -> ClusterImage:
    image = read_cluster_image(OsDisk(), str(logs))
    assert image is not None
    return image


def assert_is_what_the_broker_says(image: ClusterImage) -> None:
    expected = live(FOLDER)["topics"]
    assert set(image.topics) == set(expected)
    for name, told in expected.items():
        topic = image.topics[name]
        assert topic.topic_id == told["id"].replace("/", "_").replace("+", "-")
        assert {str(number): leader for number, leader in topic.leaders.items()} == told["leaders"]
        assert topic.configs == told["configs"]
        settings = {"cleanup.policy": "delete"} | image.settings(topic, "1")
        assert {setting: settings[setting] for setting in told["effective"]} == told["effective"]


def test_topics_settings_and_leaders_are_what_the_broker_says(logs: Path) -> None:
    assert_is_what_the_broker_says(image_of(logs))


def test_the_log_alone_says_the_same_as_snapshot_and_log(logs: Path) -> None:
    whole = image_of(logs)
    (logs / FOLDER / NEWER).unlink()
    assert image_of(logs) == whole
    (logs / FOLDER / OLDER).unlink()
    assert image_of(logs) == whole


def test_a_setting_of_a_single_broker_is_nobody_elses(logs: Path) -> None:
    image = image_of(logs)
    plain = image.topics["plain"]
    assert (image.settings(plain, "1")["retention.bytes"], image.settings(plain).get("retention.bytes")) == ("900000", None)


def test_no_setting_of_a_broker_is_kept_that_does_not_speak_of_logs(logs: Path) -> None:
    assert set(image_of(logs).broker_defaults) == {"log.retention.ms", "log.cleaner.delete.retention.ms"}


def test_a_topic_of_the_same_name_and_another_id_is_none(logs: Path) -> None:
    image = image_of(logs)
    topic = image.topics["orders"]
    assert image.topic("orders", topic.topic_id) == topic
    assert image.topic("orders", ID) is None
    assert image.topic("gone", ID) is None


def test_a_log_directory_without_metadata_has_no_image(tmp_path: Path) -> None:
    assert read_cluster_image(OsDisk(), str(tmp_path)) is None


def test_a_log_cut_at_any_byte_gives_an_older_image_and_never_less_than_the_snapshot(logs: Path) -> None:
    log, ends = logs / FOLDER / LOG, []
    whole = log.stat().st_size
    for size in [*range(whole, whole - BEHIND_THE_SNAPSHOT, -1), *range(whole - BEHIND_THE_SNAPSHOT, -1, -311)]:
        with log.open("r+b") as file:
            file.truncate(size)
        ends.append(image_of(logs).end_offset)
    assert ends == sorted(ends, reverse=True)
    assert (len(set(ends)), ends[0], ends[-1]) == (9, 91, 83)


def test_a_snapshot_cut_at_any_byte_is_corrupt(logs: Path) -> None:
    snapshot = logs / FOLDER / NEWER
    snapshot.chmod(0o600)
    for size in range(snapshot.stat().st_size - 1, -1, -1):
        with snapshot.open("r+b") as file:
            file.truncate(size)
        with pytest.raises(Corrupt, match=NEWER):
            image_of(logs)


def test_a_snapshot_with_a_bit_flipped_is_corrupt(logs: Path) -> None:
    snapshot = logs / FOLDER / NEWER
    snapshot.chmod(0o600)
    whole, image = snapshot.read_bytes(), image_of(logs)
    for at in range(0, len(whole), 97):
        snapshot.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            assert image_of(logs) == image
        except Corrupt:
            continue


def test_a_log_that_starts_behind_the_newest_snapshot_is_corrupt(logs: Path) -> None:
    log = logs / FOLDER / LOG
    log.rename(log.with_name(f"{84:020d}.log"))
    with pytest.raises(Corrupt, match="starts at offset 84 and its newest snapshot ends at 83"):
        image_of(logs)


class Deletes(OsDisk):
    """A disk whose broker deletes the newest snapshot between its being listed and its being read, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def size(self, file: str) -> int:
        if file.endswith(NEWER) and self.times:
            self.times -= 1
            raise NotFound(f"{file}: deleted")
        return super().size(file)


def test_a_snapshot_that_its_broker_deletes_meanwhile_is_looked_for_again(logs: Path) -> None:
    assert read_cluster_image(Deletes(3), str(logs)) == image_of(logs)
    with pytest.raises(NotFound):
        read_cluster_image(Deletes(99), str(logs))


def replayed(*records: TopicMade | TopicRemoved | LeaderNamed | ConfigSet | TransactionMark) -> ClusterImage:
    builder = ImageBuilder()
    for record in records:
        builder.replay(record)
    return builder.image(7)


def test_records_of_a_transaction_count_when_it_has_ended_well() -> None:
    made, other = TopicMade("t", ID), TopicMade("u", OTHER)
    begin, end, abort = TransactionMark.begin, TransactionMark.end, TransactionMark.abort
    assert set(replayed(made, begin, other).topics) == {"t"}
    assert set(replayed(made, begin, other, abort).topics) == {"t"}
    assert set(replayed(made, begin, other, end).topics) == {"t", "u"}
    assert set(replayed(begin, other, abort, made).topics) == {"t"}


def test_a_topic_that_is_made_again_has_none_of_the_old_ones_settings() -> None:
    old = TopicMade("t", ID), ConfigSet(2, "t", "cleanup.policy", "compact"), LeaderNamed(ID, 0, 5)
    image = replayed(*old, TopicRemoved(ID), TopicMade("t", OTHER), LeaderNamed(OTHER, 0, 6))
    assert (image.topics["t"].topic_id, image.topics["t"].configs, image.topics["t"].leaders) == (OTHER, {}, {0: 6})


def test_a_record_of_a_topic_that_nobody_has_made_is_corrupt() -> None:
    for record in (TopicRemoved(ID), LeaderNamed(ID, 0, 1)):
        with pytest.raises(Corrupt, match=ID):
            replayed(record)
