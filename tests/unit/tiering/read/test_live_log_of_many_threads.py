"""Threads that read over both tiers while one appends, offloads and drops: each finds every batch as it was appended."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from owned_logs import OwnedLog

from local_log.engine.memory_records import memory_batches
from local_log.errors import OffsetOutOfRange


@pytest.mark.slow
def test_many_threads_read_while_one_appends_offloads_and_drops(tmp_path: Path, switching: None) -> None:
    at = OwnedLog(str(tmp_path), file_delete_delay_ms=0)
    at.fill(6)
    is_over = threading.Event()
    seen: list[dict[int, bytes]] = [{}, {}, {}]
    starts: list[int] = []

    def reading(number: int) -> None:
        offset = 0
        while True:
            is_last = is_over.is_set()
            try:
                parts = at.live.fetch(offset, 700 + number).read()
            except OffsetOutOfRange as e:
                starts.append(e.start - offset)
                offset = e.start
                continue
            for one in memory_batches(parts):
                assert one.base_offset <= offset <= one.last_offset
                seen[number][one.base_offset] = parts[one.position : one.position + one.size]
                offset = one.last_offset + 1
            if is_last and not parts:
                return

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(reading, number) for number in range(3)]
        try:
            for turn in range(12):
                at.fill(8)
                at.offload()
                at.drop(600)
                at.log.folder.delete_due()
                if turn % 4 == 3:
                    at.expire(6_000)
        finally:
            is_over.set()
        for reader in readers:
            reader.result()
    for found in seen:
        assert found.items() <= at.batches.items()
        assert len(found) > 20
    assert min(starts, default=1) > 0
