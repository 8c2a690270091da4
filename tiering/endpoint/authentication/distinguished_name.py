"""Who a certificate is for, as text: RFC 2253 as Java writes it (X500Principal.getName), which ACLs of Kafka have.

The last name comes first, and several parts of one name have a plus between them. What the RFC has no short name for is told
by its number, and its value, as any that is no text, by # and the hexadecimal digits of its DER.

    CN=alice,OU=Clients,O=Example              1.2.840.113549.1.9.1=#160d61406578616d706c652e636f6d,CN=alice
"""

from collections.abc import Iterator
from typing import Final

_SEQUENCE, _OBJECT_ID, _VERSION = 0x30, 0x06, 0xA0
_TEXTS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
"""UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString, whose bytes Java takes for UTF-8."""
_SHORT_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ESCAPED: Final = str.maketrans({one: f"\\{one}" for one in ',=+<>#;"\\'} | {"\0": "\\00"})
_BLANKS: Final = " \r"
_LENGTH_BYTES_MAX: Final = 4
_NUMBER_BYTES_MAX: Final = 128
_BEFORE_SUBJECT: Final = 4
"""The serial number, the algorithm of the signature, the issuer and the validity."""


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER. Raises ValueError for one that cannot be read, or has a text that is not UTF-8."""
    fields = [(tag, value) for tag, value, _ in _elements(_only(_only(certificate)))]
    if fields and fields[0][0] == _VERSION:
        del fields[0]
    if len(fields) <= _BEFORE_SUBJECT or fields[_BEFORE_SUBJECT][0] != _SEQUENCE:
        raise ValueError("a certificate without a subject")
    return name_of(fields[_BEFORE_SUBJECT][1])


def name_of(names: bytes) -> str:
    """What is in a Name. Raises ValueError."""
    return ",".join("+".join(_parts(value)) for _, value, _ in reversed([*_elements(names)]))


def _parts(name: bytes) -> Iterator[str]:
    for _, pair, _ in _elements(name):
        [(of, number, _), (tag, value, whole)] = _elements(pair)
        if of != _OBJECT_ID:
            raise ValueError("a part of a name that does not begin with its number")
        dotted = _dotted(number)
        short = _SHORT_NAMES.get(dotted)
        is_text = short is not None and tag in _TEXTS
        yield f"{short or dotted}={_escaped(value.decode()) if is_text else f'#{whole.hex()}'}"


def _escaped(text: str) -> str:
    escaped = text.translate(_ESCAPED)
    inner = escaped.strip(_BLANKS)
    before = len(escaped) - len(escaped.lstrip(_BLANKS))
    blanks = escaped[:before], escaped[before + len(inner) :]
    first, last = ("".join(f"\\{blank}" for blank in some) for some in blanks)
    return f"{first}{inner}{last}"


def _dotted(number: bytes) -> str:
    if not 0 < len(number) <= _NUMBER_BYTES_MAX or number[-1] & 0x80:
        raise ValueError("a number that is cut, or too long")
    parts, part = list[int](), 0
    for byte in number:
        part = part << 7 | byte & 0x7F
        if not byte & 0x80:
            parts.append(part)
            part = 0
    first = min(parts[0] // 40, 2)
    return ".".join(map(str, (first, parts[0] - 40 * first, *parts[1:])))


def _only(data: bytes) -> bytes:
    """The value of the first element, which is a sequence."""
    found = next(_elements(data), None)
    if found is None or found[0] != _SEQUENCE:
        raise ValueError("no certificate")
    return found[1]


def _elements(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The tag, the value and all bytes of each element. Raises ValueError."""
    pos = 0
    while pos < len(data):
        head = data[pos : pos + 2]
        if len(head) < 2 or head[0] & 0x1F == 0x1F:
            raise ValueError(f"no element at {pos}")
        start, size = pos + 2, head[1]
        if size & 0x80:
            count = size & 0x7F
            if not 0 < count <= _LENGTH_BYTES_MAX or len(data) < start + count:
                raise ValueError(f"no length at {pos}")
            size, start = int.from_bytes(data[start : start + count], "big"), start + count
        end = start + size
        if end > len(data):
            raise ValueError(f"the element at {pos} is cut")
        yield head[0], data[start:end], data[pos:end]
        pos = end
