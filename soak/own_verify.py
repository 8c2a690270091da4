"""Reads everything back that was ever acknowledged, from whichever tier has it."""

import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent), str(HERE)]

from own_load import FAILS_MAX, KEYS, KEYS_EACH, MAYBE, PARTITIONS, Known  # noqa: E402

from local_log.engine.memory_records import memory_batches  # noqa: E402
from local_log.errors import LogError  # noqa: E402
from local_log.formats.batches import decode, scan  # noqa: E402
from local_log.formats.filenames import TopicPartition  # noqa: E402

if TYPE_CHECKING:
    from own_life import Owner


def verify(owner: "Owner") -> dict[str, Any]:
    """Reads every partition from its start to its end, and holds it against all that was ever acknowledged."""
    found: Counter[str] = Counter()
    for which, partition in enumerate(PARTITIONS):
        live, known = owner.live[which], dict(owner.known[which])
        newest: dict[int, int] = defaultdict(lambda: -1)
        now = owner.log(partition).offsets
        offset, failed, is_compacted = now.log_start, 0, partition.topic == "compacted"
        found["local log starts above 0"] += now.local_log_start > 0
        while offset < now.end.offset:
            following = offset
            try:
                records, failed = live.fetch(offset, 1 << 20).read(), 0
            except LogError as e:
                failed += 1
                if isinstance(e, MAYBE) and failed < FAILS_MAX:
                    continue
                owner.wrong(f"{partition}: {offset} cannot be read: {e}")
                break
            for one in memory_batches(records):
                if not one.is_valid(records) or one.last_offset < offset or (one.base_offset != offset and not is_compacted):
                    owner.wrong(f"{partition}: at {offset} lies {one}")
                if is_compacted:
                    note_newest(newest, records[one.position : one.position + one.size], known)
                elif one.base_offset in known:
                    found["batches"] += 1
                    if known.pop(one.base_offset)[:2] != (one.last_offset + 1, one.crc):
                        owner.wrong(f"{partition}: not what was acknowledged at {one.base_offset}: {one}")
                found["bytes"] += one.size
                offset = one.last_offset + 1
            if offset == following:
                break
        if is_compacted:
            check_newest(owner, partition, newest, known)
        elif known:
            owner.wrong(f"{partition}: {len(known)} acknowledged batches are not there, the first at {min(known)}")
    ends = {str(partition): owner.log(partition).log_end_offset for partition in PARTITIONS}
    return {**found, "ends": ends}


def note_newest(newest: dict[int, int], body: bytes, known: Known) -> None:
    """Notes the greatest number of a batch that each key has."""
    batches, _ = scan(body)
    for _, records in decode(body, batches):
        for key, value in zip(records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True):
            newest[int(key)] = max(newest[int(key)], int.from_bytes(value[:8], "big"))


def check_newest(owner: "Owner", partition: TopicPartition, newest: dict[int, int], known: Known) -> None:
    """Each key's newest value is that of the last acknowledged batch with it, or a later one."""
    expected: dict[int, int] = {}
    for _, _, number in known.values():
        for n in range(KEYS_EACH):
            key = (number * KEYS_EACH + n) % KEYS
            expected[key] = max(expected.get(key, -1), number)
    lost = {key for key, number in expected.items() if newest[key] < number}
    if lost:
        owner.wrong(f"{partition}: the newest values of {len(lost)} keys are not there, as of {min(lost)}")
