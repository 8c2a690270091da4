from pathlib import Path

import pytest
from asked_endpoint import Endpoint
from loop_clients import MIXED, LoopClient, fetch, fetch_loop, known, the_long_way
from tiered_worlds import batches_of

from local_log.file_range import FileRange
from tiering.endpoint.fetch_loop import loop as loops
from tiering.endpoint.fetch_loop.known_batches import KnownBatches
from tiering.endpoint.fetch_loop.known_requests import KnownRequests
from tiering.endpoint.fetch_loop.loop import FetchLoop
from tiering.endpoint.reads import Reads
from tiering.read.tiered_log import TieredLog


def test_a_file_that_was_truncated_and_written_anew_is_not_answered_from(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    client, batches = known(endpoint, loop, 0, 1), batches_of(folder, f"{MIXED}-0")
    (file, *_) = sorted((folder / f"{MIXED}-0").glob("*.log"))
    data = file.read_bytes()
    file.write_bytes(data[: len(batches[0].body) // 2])
    assert client.event(fetch(endpoint)) is not None, "it ends in the batch"
    file.write_bytes(data[:17] + bytes(4) + data[21:])
    client.arm()
    assert client.event(fetch(endpoint)) is not None, "another checksum"
    file.write_bytes(data)
    client.arm()
    for _ in range(3):
        assert client.ask(fetch(endpoint)) == the_long_way(endpoint, fetch(endpoint))


def test_an_answer_of_several_batches_begins_with_the_one_that_is_known(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    batches = batches_of(folder, f"{MIXED}-0")
    request = fetch(endpoint, max_bytes=len(batches[0].body) + len(batches[1].body))
    client = LoopClient(endpoint, loop)
    for _ in range(4):
        client.ask(request)
    assert client.by_loop > 0
    (file, *_) = sorted((folder / f"{MIXED}-0").glob("*.log"))
    with file.open("r+b") as written:  # others that end where the last one begins, which is there again
        written.write((1 << 40).to_bytes(8, "big"))
    assert client.event(request) is not None


def test_a_file_whose_place_another_has_taken_is_forgotten_within_a_second(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    client = known(endpoint, loop)
    (file, *_) = sorted((folder / f"{MIXED}-0").glob("*.log"))
    endpoint.context.reads.forget_recent()
    loop.look()
    assert client.event(fetch(endpoint)) is None, "it is the same"
    right = client.answer()
    cleaned = file.with_suffix(".cleaned")
    cleaned.write_bytes(file.read_bytes())
    cleaned.rename(file)
    assert client.event(fetch(endpoint)) is None, "it is open yet"
    assert client.answer() == right
    endpoint.context.reads.forget_recent()
    loop.look()
    assert client.event(fetch(endpoint)) is not None


def test_the_loop_looks_at_no_more_batches_than_its_answers_are_worth(
    endpoints: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "LEARNED_MAX", 1)
    monkeypatch.setattr(loops, "LEARNED_A_SECOND", 2)
    looked = list[int]()
    learn = KnownBatches.learn

    def counted(self: KnownBatches, log: TieredLog, offset: int, sent: FileRange, reads: Reads) -> None:
        looked.append(offset)
        learn(self, log, offset, sent, reads)

    monkeypatch.setattr(KnownBatches, "learn", counted)
    monkeypatch.setattr("tiering.endpoint.fetch_loop.known_batches.LEARNED_BYTES", 1)  # nothing is ever known
    endpoint = endpoints[0]
    with fetch_loop(endpoint) as loop:
        client = LoopClient(endpoint, loop)
        with monkeypatch.context() as patch:
            patch.setattr(KnownRequests, "add", lambda *_: None)  # as of a log that this process writes
            for _ in range(20):
                client.ask(fetch(endpoint))
        assert looked == []
        for _ in range(20):
            assert client.ask(fetch(endpoint)) == the_long_way(endpoint, fetch(endpoint))
        assert len(looked) == 1
        loop.look()
        for _ in range(20):
            client.ask(fetch(endpoint))
        assert len(looked) == 3
        assert client.by_loop == 0
