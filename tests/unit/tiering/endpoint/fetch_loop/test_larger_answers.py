import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from asked_endpoint import Endpoint, bytes_of
from logs_to_archive import copy_of
from loop_clients import LoopClient, counted, fetch, fetch_loop, the_long_way
from tiered_worlds import World, batches_of

from local_log.errors import Conflict
from local_log.file_range import FileRange
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT
from tiering.endpoint.fetch_loop.loop import FetchLoop, Unsent
from tiering.endpoint.fetch_loop.tables import COPIED_MAX

NONE = "g-codec-none"
BYTES = 100_000
TRIES = 100


def larger(endpoint: Endpoint, offset: int = 0, max_bytes: int = BYTES, version: int = 11) -> bytes:
    return fetch(endpoint, offset, version, NONE, max_bytes=max_bytes)


def knows(endpoint: Endpoint, loop: FetchLoop, *requests: bytes) -> LoopClient:
    """A client whose requests the loop answers."""
    client = LoopClient(endpoint, loop)
    for _ in range(4):
        for request in requests or (larger(endpoint),):
            client.ask(request)
    assert client.by_loop > 0
    return client


def file_of(folder: Path) -> Path:
    return min((folder / f"{NONE}-0").glob("*.log"))


@pytest.mark.parametrize(("version", "copied_max"), [(11, COPIED_MAX), (11, 50_000), (18, COPIED_MAX), (18, 60_000)])
def test_larger_answers_begin_with_any_batch_of_a_file_and_end_with_any_that_fits(
    world: World, endpoints: list[Endpoint], version: int, copied_max: int
) -> None:
    batches = batches_of(world.folders["local alone"], f"{NONE}-0")[:9]  # of the first file
    offsets = [offset for batch in batches for offset in {batch.base_offset, batch.last_offset}]
    for endpoint, is_in_a_file in zip(endpoints, (True, False, True), strict=True):
        with fetch_loop(endpoint, copied_max) as loop:
            for max_bytes in (40_000, BYTES, 1 << 20):
                requests = [larger(endpoint, offset, max_bytes, version) for offset in offsets]
                right = [the_long_way(endpoint, request) for request in requests]
                client = LoopClient(endpoint, loop)
                for _ in range(2):
                    assert [client.ask(request) for request in requests] == right
                before = client.by_loop
                assert [client.ask(request) for request in requests] == right
                if max_bytes < 1 << 20:  # which is more than the file has, so that the next one is needed
                    assert (client.by_loop - before > len(requests) // 3) == is_in_a_file


def test_a_larger_fetch_below_the_log_start_is_out_of_range_although_it_is_checked(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    start = int(batches_of(folder, f"{NONE}-0")[0].last_offset)
    (folder / LOG_START_OFFSET_CHECKPOINT).write_text(f"0\n1\n{NONE} 0 {start}\n")
    endpoint = Endpoint(folder, None)
    with fetch_loop(endpoint) as loop:
        client = knows(endpoint, loop, larger(endpoint, start))
        for offset in (start - 1, 0):
            assert client.ask(larger(endpoint, offset)) == the_long_way(endpoint, larger(endpoint, offset))


@pytest.mark.parametrize("copied_max", [COPIED_MAX, 1_000], ids=["what is copied", "what sendfile sends"])
def test_what_the_socket_does_not_take_of_a_larger_answer_is_a_range_of_its_file(
    endpoints: list[Endpoint], copied_max: int
) -> None:
    with fetch_loop(endpoints[0], copied_max) as loop:
        client = knows(endpoints[0], loop)
        frame = larger(endpoints[0])
        client.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        right, before = the_long_way(endpoints[0], frame), counted(endpoints[0], NONE)
        found = client.event(frame)
        assert isinstance(found, Unsent)
        assert right is not None
        assert b"".join(map(bytes_of, found.parts)) == right
        assert [type(part) for part in found.parts] == [bytes, FileRange, bytes]
        assert 0 < found.sent < len(right)
        assert client.client.recv(found.sent, socket.MSG_WAITALL) == right[: found.sent]
        after = counted(endpoints[0], NONE)
        assert (after - before)[1] == 1


def test_a_client_that_takes_a_larger_answer_slowly_gets_all_of_it_in_order(endpoints: list[Endpoint]) -> None:
    frame = larger(endpoints[0])
    right = the_long_way(endpoints[0], frame)
    assert right is not None
    with fetch_loop(endpoints[0], copied_max=30_000) as loop, ThreadPoolExecutor(1) as thread:
        client = knows(endpoints[0], loop)
        client.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        for _ in range(TRIES):
            taken = thread.submit(client.answer)
            unsent = client.event(frame)
            if unsent is None:
                break
            assert isinstance(unsent, Unsent)  # on a busy machine nobody took any of it while the loop waited
            client.server.settimeout(5)
            client.server.sendall(b"".join(map(bytes_of, unsent.parts))[unsent.sent :])
            client.server.setblocking(False)
            assert taken.result() == right
            client.arm()
        assert unsent is None, "the loop waits for who takes it"
        assert taken.result() == right


def test_a_file_that_was_written_since_its_batches_were_checked_is_not_sent(
    changing: tuple[Endpoint, FetchLoop, Path],
) -> None:
    endpoint, loop, folder = changing
    client, file = knows(endpoint, loop), file_of(folder)
    data = file.read_bytes()
    for other in (data + b"!", data[:-1], data[:50_000], data[: 1 << 10] + bytes(1) + data[(1 << 10) + 1 :]):
        file.write_bytes(other)
        assert client.event(larger(endpoint)) is not None
        client.arm()
    file.write_bytes(data)
    for _ in range(4):
        assert client.ask(larger(endpoint)) == the_long_way(endpoint, larger(endpoint))


def test_the_rest_of_an_answer_is_not_sent_from_a_file_that_is_truncated_meanwhile(
    changing: tuple[Endpoint, FetchLoop, Path],
) -> None:
    endpoint, loop, folder = changing
    client = knows(endpoint, loop)
    client.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    found = client.event(larger(endpoint))
    assert isinstance(found, Unsent)
    (sent,) = (part for part in found.parts if isinstance(part, FileRange))
    sent.check()
    with file_of(folder).open("r+b") as file:
        file.truncate(60_000)
    with pytest.raises(Conflict):
        sent.check()


@pytest.mark.parametrize("max_bytes", [1, BYTES])
def test_records_that_no_tier_has_any_more_are_not_given_although_their_batch_is_known(
    world: World, tmp_path: Path, max_bytes: int
) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    active = max((folder / f"{NONE}-0").glob("*.log"))
    start = int(next(b.last_offset for b in batches_of(folder, f"{NONE}-0") if b.base_offset >= int(active.stem)))
    (folder / LOG_START_OFFSET_CHECKPOINT).write_text(f"0\n1\n{NONE} 0 {start}\n")
    endpoint = Endpoint(folder, world.store)
    with fetch_loop(endpoint) as loop:
        client = knows(endpoint, loop, larger(endpoint, start, max_bytes))
        deleted = larger(endpoint, start - 1, max_bytes)
        assert client.ask(deleted) == the_long_way(endpoint, deleted)


def test_a_file_is_looked_for_where_it_was_read_also_if_its_first_records_are_deleted(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["some archived dropped"], tmp_path / "logs")
    start = int(batches_of(folder, f"{NONE}-0")[0].last_offset)
    (folder / LOG_START_OFFSET_CHECKPOINT).write_text(f"0\n1\n{NONE} 0 {start}\n")
    endpoint = Endpoint(folder, world.store)
    with fetch_loop(endpoint) as loop:
        client = knows(endpoint, loop, larger(endpoint, start))
        endpoint.context.reads.forget_recent()
        loop.look()
        assert client.event(larger(endpoint, start)) is None
        assert client.answer() == the_long_way(endpoint, larger(endpoint, start))


def test_a_file_stays_mapped_while_it_is_the_same_and_no_longer(changing: tuple[Endpoint, FetchLoop, Path]) -> None:
    endpoint, loop, folder = changing
    client, file = knows(endpoint, loop), file_of(folder)

    def mapped() -> str:
        return "\n".join(line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line)

    for _ in range(3):
        endpoint.context.reads.forget_recent()
        loop.look()
        assert client.event(larger(endpoint)) is None
        client.answer()
    assert str(file) in mapped()
    file.with_suffix(".cleaned").write_bytes(file.read_bytes())
    file.with_suffix(".cleaned").rename(file)
    endpoint.context.reads.forget_recent()
    loop.look()
    assert client.event(larger(endpoint)) is not None
    endpoint.context.reads.forget_recent()
    assert "(deleted)" not in mapped()
