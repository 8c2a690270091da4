"""Names of certificates in DER, usual and odd, and what Java calls them."""

from typing import Final

COMMON_NAME: Final = "2.5.4.3"
_SHORT_NAMED: Final = ("2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11")
_NUMBERED: Final = ("2.5.4.4", "2.5.4.5", "2.5.4.12", "2.5.4.42", "2.5.4.97", "1.2.3.4.55555", "2.999.3")
UTF8, PRINTABLE, T61, IA5, UNIVERSAL, GENERAL, BMP, NUMERIC, VISIBLE = 0x0C, 0x13, 0x14, 0x16, 0x1C, 0x1B, 0x1E, 0x12, 0x1A


def element(tag: int, value: bytes) -> bytes:
    """Tag, length, value."""
    size = len(value).to_bytes((len(value).bit_length() + 7) // 8 or 1, "big")
    return bytes([tag]) + (size if len(value) < 0x80 else bytes([0x80 | len(size)]) + size) + value


def part(number: str, value: bytes, tag: int = UTF8) -> bytes:
    """One attribute with its value."""
    first, second, *others = map(int, number.split("."))
    digits = bytearray()
    for one in (40 * first + second, *others):
        groups = [one >> shift & 0x7F for shift in range(0, max(one.bit_length(), 1), 7)]
        digits += bytes([*(group | 0x80 for group in groups[:0:-1]), groups[0]])
    return element(0x30, element(6, bytes(digits)) + element(tag, value))


def whole(*names: list[bytes]) -> bytes:
    """A Name of these, each of which has one part or several."""
    return element(0x30, b"".join(element(0x31, b"".join(parts)) for parts in names))


def _called(value: bytes, tag: int = UTF8) -> bytes:
    return whole([part(COMMON_NAME, value, tag)])


SUBJECTS: Final = {
    whole(): "",
    whole([]): "",
    whole([part("2.5.4.10", b"Example", PRINTABLE)], [part(COMMON_NAME, b"alice")]): "CN=alice,O=Example",
    whole([part(COMMON_NAME, b"a")], [part("1.2.840.113549.1.9.1", b"a@b", IA5)]): "1.2.840.113549.1.9.1=#1603614062,CN=a",
    whole([part("0.9.2342.19200300.100.1.25", b"com", IA5)], [part("0.9.2342.19200300.100.1.1", b"u")]): "UID=u,DC=com",
    whole(*([part(number, b"x")] for number in _SHORT_NAMED)): "OU=x,O=x,STREET=x,ST=x,L=x,C=x,CN=x",
    whole(*([part(number, b"x")] for number in _NUMBERED)): ",".join(f"{one}=#0c0178" for one in reversed(_NUMBERED)),
    whole(
        [part("2.5.4.11", b"z"), part(COMMON_NAME, b"a"), part("1.2.3", b"q")], [part("2.5.4.6", b"DE", PRINTABLE)]
    ): "C=DE,OU=z+CN=a+1.2.3=#0c0171",
    whole([part("1.2.3", b"x" * 300)]): f"1.2.3=#0c82012c{'78' * 300}",
    _called(b"x" * 300): f"CN={'x' * 300}",
    _called(b""): "CN=",
    _called(b' #a,b=c+d"e\\f<g>h;i '): r"CN=\ \#a\,b\=c\+d\"e\\f\<g\>h\;i" + "\\ ",
    _called(b"  a  b  "): r"CN=\ \ a  b\ " + "\\ ",
    _called(b"   "): "CN=\\ \\ \\ ",
    _called(b"\r\na\n\r"): "CN=\\\r\na\n\\\r",
    _called(b"a\\ "): "CN=a\\\\\\ ",
    _called(b"a\0b\x01\x7f"): "CN=a\\00b\x01\x7f",
    _called("Zoë ☃ 😀".encode()): "CN=Zoë ☃ 😀",
    _called(b"t61", T61): "CN=t61",
    _called(b"general", GENERAL): "CN=general",
    _called("Zo".encode("utf-16-be"), BMP): "CN=\\00Z\\00o",
    _called("Z".encode("utf-32-be"), UNIVERSAL): "CN=#1c040000005a",
    _called(b"12 3", NUMERIC): "CN=#120431322033",
    _called(b"vis", VISIBLE): "CN=#1a03766973",
    _called(b"\x05", 2): "CN=#020105",
    _called(b"ab", 4): "CN=#04026162",
    _called(element(2, b"\1"), 0x30): "CN=#3003020101",
    _called(element(UTF8, b"ab"), 0x2C): "CN=#2c040c026162",
    whole([part("2.5.4.45", b"\0\1", 3)]): "2.5.4.45=#03020001",
}
"""By what Java 17 says."""

_ADMIN = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
MAPPED: Final = [
    ("DEFAULT", _ADMIN, _ADMIN),
    ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", _ADMIN, "Duke"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L", _ADMIN, "duke@serviceusers"),
    ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/U , DEFAULT", _ADMIN, "DUKE@SERVICEUSERS"),
    ("RULE:^cn=nobody$/x/,RULE:^CN=([^,]+).*$/$1/", _ADMIN, "Duke"),
    ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", "CN=kafka.example,O=Org", "kafka.example"),
    ("RULE:CN=(.*?),.*/$1$2\\$1/", _ADMIN, "Duke$2$1"),
    ("RULE:CN=(.*?),.*/$12/", _ADMIN, "Duke2"),
    ("RULE:CN=(.*?)\\/(.*)/$2-$1/", "CN=kafka/host", "host-kafka"),
]
"""Rules, a subject, and the name that they make of it."""
