"""Batches of all kinds, sound and not: what we make of them is what Kafka's own LogValidator makes of them."""

import base64
import random  # noqa: TID251  # seeded
import zlib
from typing import Any

import pytest
from hand_made import batch, body, compressed, field, message, wrapper, xerial
from kafka_judge import Judge, oracle

from local_log.engine.append.validator import Rules, Validated, validate
from local_log.engine.errors import InvalidRecord, Refused, UnknownServerError
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.formats.compression import compress, inflate
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.record import Codec
from local_log.formats.record_batch.header import BatchHeader, read_batch_header

NOW = 1_700_000_000_000
ROUNDS = 1_500
OLD_CODECS = (Codec.none, Codec.gzip, Codec.snappy, Codec.lz4)
SAME_BYTES = {Codec.none, Codec.gzip, Codec.lz4}
"""Targets that both compress to the same bytes; of the others, headers and records are the same."""


class Dice:
    """Chances, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one_in(self, n: int) -> bool:
        return self.random.randrange(n) == 0

    def of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def bytes(self) -> "bytes | None":
        return self.of(None, b"", b"k", b"some value", self.random.randbytes(self.random.randrange(200)), b"x" * 300)


def a_record(dice: Dice, n: int, wrong: bool) -> bytes:
    delta = dice.of(n + 1, 0, -1, 2**31 - 1) if wrong and dice.one_in(8) else n
    time = dice.of(0, n, -n, 900, -900, 2_000, -2_000) if wrong or dice.one_in(3) else n % 7
    names = (b"", b"name", "näme".encode(), b"\xff\xfebad", b"\xe2\x82")
    headers = [(dice.of(*names), dice.bytes()) for _ in range(dice.of(0, 0, 0, 1, 3))]
    key = None if wrong and dice.one_in(4) else dice.bytes() or b"key"
    made = body(delta, timestamp_delta=time, key=key, value=dice.bytes(), headers=headers)
    if wrong and dice.one_in(12):
        return dice.of(field(made + b"\0"), field(made[:-1]), field(made)[:-1], b"", field(b"\x80\x80" + made))
    return field(made)


def a_section(dice: Dice, codec: int, records: bytes, *, may_be_cut: bool = True) -> bytes:
    if codec == Codec.none:
        return records
    made = dice.of(compressed(codec, records), compress(Codec(codec), records))
    if codec == Codec.snappy and dice.one_in(3):
        made = xerial(records[:10], records[10:])
    if may_be_cut and dice.one_in(40):
        made = made[: dice.random.randrange(len(made))]
    return made


def a_batch(dice: Dice) -> tuple[bytes, Codec]:
    wrong = dice.one_in(2)
    codec = dice.of(*Codec)
    records = [a_record(dice, n, wrong) for n in range(dice.of(1, 2, 5, 40))]
    section = bytearray(b"".join(records))
    if section and wrong and dice.one_in(6):
        section[dice.random.randrange(len(section))] = dice.random.randrange(256)
    count = len(records) + (dice.of(1, -1, -100) if wrong and dice.one_in(8) else 0)
    last_delta = count - 1 + (dice.of(1, -1, -100) if wrong and dice.one_in(8) else 0)
    flags = dice.of(0, 0, 0x10, 0x80, 0x100) | (dice.of(0x08, 0x20, 0x30, 0x40, 5) if wrong and dice.one_in(4) else 0)
    producer = dice.one_in(3) or flags & 0x10
    base = NOW + dice.of(0, 0, 0, 900, -900, 5_000)
    made = batch(
        base_offset=dice.of(0, 0, 0, 0, 7),
        attributes=codec | flags,
        count=count,
        last_delta=last_delta,
        base_timestamp=-1 if dice.one_in(10) else base,
        max_timestamp=dice.of(base, base + 6, base + 39, -1),
        producer_id=dice.of(4, 4, 4, 0, -1) if producer else -1,
        producer_epoch=dice.of(3, 3, 3, -1) if producer else -1,
        base_sequence=dice.of(0, 5, 2**31 - 1, -1) if producer else -1,
        epoch=dice.of(-1, 0, 9),
        section=a_section(dice, codec, bytes(section)),
    )
    if wrong and dice.one_in(10):
        made = dice.of(made + made, made[:-1], made + made[:20], b"", made[:16], made[:16] + b"\3" + made[17:])
    return made, codec


def a_message(dice: Dice, n: int, magic: int, wrong: bool) -> bytes:
    time = dice.of(0, n, -n, 900, -900, 2_000, -2_000) if wrong or dice.one_in(3) else n % 7
    made = message(
        dice.of(magic, 1 - magic) if wrong and dice.one_in(8) else magic,
        dice.bytes(),
        offset=dice.of(n, n, 5 * n, -1) if wrong else n,
        key=None if wrong and dice.one_in(4) else dice.bytes() or b"key",
        attributes=dice.of(8, 16, 1) if wrong and dice.one_in(8) else 0,
        timestamp=dice.of(-1, -2, -(2**63), 2**63 - 1) if dice.one_in(12) else NOW + time,
        crc_off_by=1 if wrong and dice.one_in(12) else 0,
    )
    if wrong and dice.one_in(12):
        at = 26 if made[16] else 18
        size = dice.of(-1, -7, 0, 1, 10**9).to_bytes(4, "big", signed=True)
        made = sealed(made[:at] + size + made[at + 4 :])
    if wrong and dice.one_in(20):
        made = sealed(made[:8] + (14).to_bytes(4, "big") + made[12:26])
    return made


def sealed(made: bytes) -> bytes:
    """The message with the checksum that its bytes have."""
    return made[:12] + zlib.crc32(made[16:]).to_bytes(4, "big") + made[16:]


def messages(dice: Dice) -> bytes:
    """A request of a client of old: messages of magic 0 or 1, or a compressed one."""
    wrong = dice.one_in(2)
    magic, codec = dice.of(0, 1), dice.of(*Codec) if wrong else dice.of(*OLD_CODECS)
    made = [a_message(dice, n, magic, wrong) for n in range(dice.of(1, 2, 5, 40))]
    if codec == Codec.none:
        return b"".join(made)
    inner = b"".join(made)
    if wrong and dice.one_in(8):
        inner = dice.of(b"", inner[:-1], inner + b"cut", inner + bytes(12), inner[:7])
    section = a_section(dice, codec, inner, may_be_cut=codec != Codec.snappy)  # its end Kafka takes for that of the messages
    if magic == 0 and codec == Codec.lz4 and dice.one_in(2):
        section = section[:6] + b"\x5a" + section[7:]
    outer = wrapper(
        magic,
        codec,
        section=section,
        offset=dice.of(0, len(made) - 1, len(made) - 1, 10**9, 1, -1) if wrong else len(made) - 1,
        key=dice.of(None, None, b"key"),
        attributes=dice.of(0, 0, 8, 16) if wrong else 0,
        timestamp=NOW + dice.of(0, 900, 5_000),
    )
    if wrong and dice.one_in(12):
        outer = dice.of(outer + outer, outer[:-1], message(magic, None, attributes=codec))
    return outer


def source_of(records: bytes) -> Codec:
    """What the log finds these messages to be compressed with, before it has them validated."""
    try:
        return next((Codec(b.codec) for b in reversed(memory_batches(records)) if b.codec), Codec.none)
    except Refused:
        return Codec.none


def a_case(dice: Dice, records: bytes, codec: Codec, source: Codec) -> dict[str, Any]:
    return {
        "records": records,
        "first_offset": dice.of(0, 1, 10**12),
        "source": source,
        "target": dice.of(codec, *Codec),
        "compacted": dice.one_in(5),
        "append_time": dice.one_in(3),
        "before": dice.of(1_000, 10**12, 2**63 - 1),
        "after": dice.of(1_000, 10**12, 2**63 - 1),
        "epoch": dice.of(0, 17),
        "origin": dice.of(Origin.CLIENT, Origin.CLIENT, Origin.COORDINATOR),
    }


def ours(case: dict[str, Any]) -> Validated | Refused:
    rules = Rules(case["target"], None, case["compacted"], case["append_time"], case["before"], case["after"])
    about = {"source_codec": case["source"], "leader_epoch": case["epoch"], "origin": case["origin"]}
    try:
        return validate(case["records"], memory_batches(case["records"]), case["first_offset"], NOW, rules, **about)
    except Refused as e:
        return e


def theirs(kafka: Judge, case: dict[str, Any]) -> list[str]:
    timestamp_type = "LOG_APPEND_TIME" if case["append_time"] else "CREATE_TIME"
    return kafka.ask(
        "validate", case["first_offset"], NOW, case["source"].name, case["target"].name, None, str(case["compacted"]).lower(),
        timestamp_type, case["before"], case["after"], case["epoch"], case["origin"].name, case["records"],
    )  # fmt: skip


def opened(made: bytes) -> tuple[BatchHeader, bytes]:
    """A batch without what a library's compression decides."""
    header = read_batch_header(made)
    return header._replace(crc=0, batch_length=0), bytes(inflate(header.codec, made[BATCH_HEADER_BYTES : header.size]))


def may_have_two_faults(found: Refused, case: dict[str, Any]) -> bool:
    """Kafka inflates and checks a record at a time, so of two faults in a compressed section it may come to the other first."""
    of_form = not found.record_errors and isinstance(found, (InvalidRecord, UnknownServerError))
    return of_form and len(case["records"]) >= BATCH_HEADER_BYTES and case["records"][22] & 7 != 0


def the_same(found: Validated | Refused, answer: list[str], case: dict[str, Any], kafka: Judge) -> str:
    """Asserts it, and says what it was that both did."""
    if answer[0] == "refused":
        assert isinstance(found, Refused)
        if may_have_two_faults(found, case):
            assert answer[1] in {"-1", "87", "32"}
            return type(found).__name__
        assert str(found.code) == answer[1]
        assert [str(e.row) for e in found.record_errors] == ([] if answer[2] == "-" else answer[2].split(","))
        return type(found).__name__
    _, made, max_timestamp, last_offset, sizes_changed, _, converted = answer
    expected = base64.b64decode(made)
    if isinstance(found, InvalidRecord):  # the one thing that we refuse and Kafka does not: what nobody reads
        assert kafka.ask("read", expected)[0] == "refused"
        return "unreadable"
    assert isinstance(found, Validated)
    if not found.is_rebuilt or case["target"] in SAME_BYTES or not expected:
        assert found.records == expected
    else:
        assert opened(found.records) == opened(expected)
    assert (found.max_timestamp, found.last_offset) == (int(max_timestamp), int(last_offset))
    assert (str(found.is_rebuilt).lower(), found.records_rebuilt) == (sizes_changed, int(converted))
    return "rebuilt" if found.is_rebuilt else "kept"


@oracle
@pytest.mark.parametrize("seed", range(4))
def test_every_batch_is_kept_rebuilt_or_refused_as_kafka_does(kafka: Judge, seed: int) -> None:
    dice, outcomes = Dice(seed), set()
    for _ in range(ROUNDS):
        records, codec = a_batch(dice)
        case = a_case(dice, records, codec, dice.of(codec, codec, codec, *Codec))
        outcomes.add(the_same(ours(case), theirs(kafka, case), case, kafka))
    assert outcomes >= {"kept", "rebuilt", "InvalidRecord", "InvalidTimestamp", "CorruptMessage", "UnknownServerError"}


@oracle
@pytest.mark.parametrize("seed", range(4))
def test_older_messages_become_one_batch_or_are_refused_as_kafka_does(kafka: Judge, seed: int) -> None:
    dice, outcomes = Dice(seed), set()
    for _ in range(ROUNDS):
        records = messages(dice)
        source = source_of(records)
        case = a_case(dice, records, source, source)
        outcomes.add(the_same(ours(case), theirs(kafka, case), case, kafka))
    assert outcomes >= {"rebuilt", "InvalidRecord", "InvalidTimestamp", "CorruptMessage", "UnknownServerError"}
