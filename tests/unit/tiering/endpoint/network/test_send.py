from random import Random  # noqa: TID251  # seeded

import pytest

from local_log.file_range import FileRange
from tiering.endpoint.network.send import BUFFERS_MAX, Send


class File:
    def __init__(self, data: bytes, *, is_mappable: bool = True) -> None:
        self.data, self.is_mappable = data, is_mappable

    def fileno(self) -> int:
        return 0

    def mapped(self, start: int, end: int) -> memoryview | None:
        return memoryview(self.data)[start:end] if self.is_mappable else None

    def read(self, start: int, end: int) -> bytes:
        return self.data[start:end]


class Unchanged:
    def is_unchanged(self, seen: object) -> bool:
        return True


DATA = File(bytes(range(256)))


def bytes_of(part: FileRange) -> bytes:
    return DATA.data[part.position : part.position + part.size]


def random_part(random: Random) -> bytes | FileRange:
    if random.random() < 0.5:
        return random.randbytes(random.randrange(10))
    return FileRange(DATA, random.randrange(200), random.randrange(56), Unchanged(), None)


@pytest.mark.parametrize("seed", range(50))
def test_all_parts_are_sent_in_order_whatever_is_taken_at_a_time(seed):
    random = Random(seed)
    parts = [random_part(random) for _ in range(random.randrange(9))]
    everything = b"".join(bytes_of(p) if isinstance(p, FileRange) else p for p in parts)
    send, sent = Send(parts), b""
    while send.left:
        whole = send.whole(send.left)
        assert whole is not None
        assert sent + b"".join(whole) == everything
        most = random.randint(1, 30)
        file = send.next_file(most)
        mapped = send.next_mapped(most)
        if mapped is not None:
            of_files = b"".join(map(bytes_of, mapped[1]))
            assert len(b"".join(mapped[0])) <= most
            assert (sent + b"".join(mapped[0])) == everything[: len(sent) + sum(map(len, mapped[0]))]
            assert 0 < len(of_files) <= most
        found = bytes_of(file) if file is not None else b"".join(send.next_buffers(most))
        assert 0 < len(found) <= most
        count = random.randint(0, len(found))
        sent += found[:count]
        send.advance(count)
    assert sent == everything
    assert send.next_file(9) is None
    assert send.next_buffers(9) == []


def test_one_call_is_given_a_limited_number_of_buffers():
    send = Send([b"x"] * (BUFFERS_MAX + 9))
    assert len(send.next_buffers(1 << 20)) == BUFFERS_MAX


def test_an_answer_is_whole_if_it_is_small_and_its_files_have_all_of_it():
    send = Send([b"head", FileRange(DATA, 0, 100, Unchanged(), None), b"tail"])
    assert send.whole(107) is None
    send.advance(10)
    assert send.whole(98) == [DATA.data[6:100], b"tail"]
    assert Send([FileRange(DATA, 200, 100, Unchanged(), None)]).whole(100) is None
    assert Send([b"x"] * (BUFFERS_MAX + 1)).whole(1 << 20) is None


def test_buffers_alone_and_files_that_cannot_be_mapped_are_not_sent_as_mapped_ones():
    unmapped = FileRange(File(b"unmapped", is_mappable=False), 0, 8, Unchanged(), None)
    assert Send([b"head", b"tail"]).next_mapped(100) is None
    assert Send([b"head", FileRange(DATA, 0, 9, Unchanged(), None), unmapped]).next_mapped(100) is None
