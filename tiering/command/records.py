"""Records as people and scripts see them: as rows, or in a form of their own as by `kcat -f`.

Keys, values and headers are text where they are UTF-8. What is not is an object with its base64 in JSON, `{"base64": "AAE="}`,
and `base64:AAE=` in a table, so that neither is taken for text.
"""

import re
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from tiering.command.output import Row
from tiering.command.terminal import printable

ENCODINGS: Final = ("text", "base64")
CUT: Final = {"key": 8, "value": 20, "headers": 8}
"""The columns of a table that are cut where they are long, and to how much at least: values are what people look for."""

_SHOWN_MAX: Final = 4096
"""Characters of a text that a table looks at; no terminal is as wide."""
_BINARY: Final = "base64"
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_SEQUENCE: Final = re.compile(r"%.|\\x[0-9a-fA-F]{2}|\\.", re.DOTALL)

Payload = bytes | None


def row_of(partition: int, record: Mapping[str, Any], encoding: str) -> Row:
    """A decoded record of a partition as a row; with the encoding base64 key, value and headers are plain base64."""
    encode = _as_text if encoding == "text" else _as_base64
    return {
        "partition": partition,
        "offset": record["offset"],
        "timestamp": record["timestamp"],
        "key": encode(record["key"]),
        "value": encode(record["value"]),
        "headers": [[encode(header["key"]), encode(header["value"])] for header in record["headers"]],
    }


def in_a_table(row: Row) -> Row:
    """A row of `row_of` as a table shows it."""
    headers = ", ".join(f"{_shown(key)}={_shown(value)}" for key, value in row["headers"])
    return {
        **row,
        "timestamp": _time(row["timestamp"]),
        "key": _shown(row["key"]),
        "value": _shown(row["value"]),
        "headers": headers[:_SHOWN_MAX],
    }


def _as_base64(data: Payload) -> str | None:
    return None if data is None else b64encode(data).decode()


def _as_text(data: Payload) -> str | dict[str, str] | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {_BINARY: b64encode(data).decode()}


def _shown(value: str | Mapping[str, str] | None) -> str:
    if value is None:
        return "null"
    return value[:_SHOWN_MAX] if isinstance(value, str) else f"{_BINARY}:{value[_BINARY]}"[:_SHOWN_MAX]


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return str(ms)  # some producers write micro- or nanoseconds


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """What is printed of each record: texts as they are, and the letters of what comes between them (see `TOKENS`)."""

    parts: tuple[bytes | str, ...]

    def of(self, topic: str, partition: int, record: Mapping[str, Any], payload: Callable[[Payload], bytes]) -> bytes:
        """A record in this form; keys, values and headers are as `payload` has them."""
        found = (topic, partition, record, payload)
        return b"".join(part if isinstance(part, bytes) else _VALUES[part](*found) for part in self.parts)


def parse_format(text: str) -> RecordFormat:
    """A form as `kcat -f` takes it. Raises ValueError for letters that mean nothing."""
    parts: list[bytes | str] = []
    end = 0
    for found in _SEQUENCE.finditer(text):
        parts += [_bytes(text[end : found.start()]), _part(found[0])]
        end = found.end()
    return RecordFormat(tuple(part for part in (*parts, _bytes(text[end:])) if part))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _part(sequence: str) -> bytes | str:
    """What a letter behind % or \\ stands for."""
    if sequence == "%%":
        return b"%"
    if sequence[0] == "%":
        if sequence[1] not in _VALUES:
            raise ValueError(f"{sequence} means nothing; known are {', '.join(f'%{letter}' for letter in _VALUES)} and %%")
        return sequence[1]
    if len(sequence) > 2:
        return bytes.fromhex(sequence[2:])
    if sequence[1] not in _ESCAPES:
        raise ValueError(f"{sequence} means nothing; known are \\n, \\r, \\t, \\0, \\\\ and such as \\x0a")
    return _ESCAPES[sequence[1]]


def payload_of(encoding: str, *, for_terminal: bool) -> Callable[[Payload], bytes]:
    """How `RecordFormat.of` has keys, values and headers: as they are, in base64, or as a terminal shows them; null is empty."""
    if encoding == "base64":
        return lambda data: b64encode(data or b"")
    if not for_terminal:
        return lambda data: data or b""
    return lambda data: printable((data or b"").decode("utf-8", "backslashreplace")).encode()


def _length(data: Payload) -> int:
    return -1 if data is None else len(data)


def _pair(key: bytes, value: Payload, payload: Callable[[Payload], bytes]) -> bytes:
    return payload(key) + b"=" + (b"NULL" if value is None else payload(value))


Value = Callable[[str, int, Mapping[str, Any], Callable[[Payload], bytes]], bytes]
_VALUES: Final[Mapping[str, Value]] = {
    "s": lambda _topic, _number, r, payload: payload(r["value"]),
    "S": lambda _topic, _number, r, _payload: b"%d" % _length(r["value"]),
    "R": lambda _topic, _number, r, _payload: struct.pack(">i", _length(r["value"])),
    "k": lambda _topic, _number, r, payload: payload(r["key"]),
    "K": lambda _topic, _number, r, _payload: b"%d" % _length(r["key"]),
    "T": lambda _topic, _number, r, _payload: b"%d" % r["timestamp"],
    "h": lambda _topic, _number, r, payload: b",".join(_pair(h["key"], h["value"], payload) for h in r["headers"]),
    "t": lambda topic, _number, _r, _payload: topic.encode(),
    "p": lambda _topic, number, _r, _payload: b"%d" % number,
    "o": lambda _topic, _number, r, _payload: b"%d" % r["offset"],
}
"""As kcat has them: value, its length (-1 for null), that length as 4 bytes, key, its length, timestamp, headers, topic, ..."""
