"""The file with the topics of a log directory that we own."""

import pytest

from local_log.errors import Corrupt, Newer
from tiering.local_tier.topics_file import Topic, Topics, read_topics, write_topics

ORDERS = Topic("A" * 22, (0, 3), {"segment.ms": "9"}, log_start_offsets={3: 70})
TOPICS = Topics({"orders": ORDERS, "new": Topic(None, (0,), being_made=(0,))}, {"B" * 22: "gone"}, 7)


def test_what_is_written_is_read() -> None:
    assert read_topics(write_topics(TOPICS)) == TOPICS
    assert read_topics(write_topics(Topics())) == Topics()


def test_a_file_cut_anywhere_is_corrupt() -> None:
    body = write_topics(TOPICS)
    for at in range(len(body) - 2):
        with pytest.raises(Corrupt, match="not the topics of a log directory"):
            read_topics(body[:at])


@pytest.mark.parametrize("body", [b"[]", b'{"format": 1}', b'{"format": "1"}', b"[" * 100_000, b'{"format":1,"topics":[]}'])
def test_another_file_of_its_name_is_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt):
        read_topics(body)


def test_a_newer_format_is_refused_as_such() -> None:
    with pytest.raises(Newer, match="has format 2, and this version reads 1 at most"):
        read_topics(b'{"format": 2}')
