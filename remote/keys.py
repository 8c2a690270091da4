"""Builds and parses every key of the archive; no other module does.

    archive.json
    <topic>/<topic id>/<partition>/segments/<base offset, 20 digits>-<leader epoch>-<segment id>.log | .aux
    <topic>/<topic id>/<partition>/manifest/<20 digits, counting down>-v<version>.json
    <topic>/<topic id>/<partition>/manifest/pages/<first base offset, 20 digits>-<last base offset, 20 digits>-<page id>.parquet
    <topic>/<topic id>/<partition>/pins/<pin id>.json
    <topic>/<topic id>/writes/<write id>/<attempt id>.json
    !brokers/<node id>-<incarnation id>-<heartbeat, 20 digits>.json

The number that counts down makes the newest manifest the first key of a listing.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from local_log.errors import Invalid

ARCHIVE = "archive.json"
LOG = ".log"
AUX = ".aux"
PROBE_PREFIX = "probe-"
BROKERS = "!brokers/"
"""No topic's name can have its first character."""

PARTITIONS_MAX = 4_096
"""Partitions, topics and their ids that are remembered: of a listing one key after the other is of the same."""

_VERSION_MAX = 10**20 - 1
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_SEGMENT = re.compile(r"([0-9]{20})-(-1|0|[1-9][0-9]*)-([0-9a-f]{32})(\.log|\.aux)")
_PAGE = re.compile(r"([0-9]{20})-([0-9]{20})-([0-9a-f]{32})\.parquet")
_PIN = re.compile(r"([0-9a-f]{32})\.json")
_WRITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}|_[0-9a-f]{32}")
_ATTEMPT = re.compile(r"([0-9a-f]{32})\.json")
_REGISTRATION = re.compile(r"(0|[1-9][0-9]{0,9})-([0-9a-f]{32})-([0-9]{20})\.json")
_MANIFEST = re.compile(r"([0-9]{20})-v([1-9][0-9]{0,19})\.json")


@dataclass(frozen=True, slots=True, order=True)
class PartitionPath:
    """The place of a partition in the archive. The topic id distinguishes a topic from a deleted one of the same name."""

    topic: str
    topic_id: str
    partition: int

    def __post_init__(self) -> None:
        if not is_topic(self.topic):
            raise Invalid(f"{self.topic!r} cannot be archived: it is not the name of a Kafka topic, or it is reserved")
        if not is_topic_id(self.topic_id):
            raise Invalid(f"{self.topic_id!r} is no topic id; Kafka's have 22 characters of base64")

    @property
    def prefix(self) -> str:
        """The prefix of every key of the partition."""
        return f"{self.topic}/{self.topic_id}/{self.partition}/"

    @property
    def manifests(self) -> str:
        """The prefix of the keys of manifests."""
        return f"{self.prefix}manifest/"

    @property
    def pages(self) -> str:
        """The prefix of the keys of pages."""
        return f"{self.manifests}pages/"

    @property
    def segments(self) -> str:
        """The prefix of the keys of segment objects."""
        return f"{self.prefix}segments/"

    @property
    def pins(self) -> str:
        """The prefix of the keys of pins."""
        return f"{self.prefix}pins/"

    def segment(self, name: str) -> str:
        """The key of a segment's object. Raises Invalid for another name, which could lead to any key."""
        if not _SEGMENT.fullmatch(name):
            raise Invalid(f"{name!r} is no segment's name")
        return f"{self.segments}{name}"

    def page(self, name: str) -> str:
        """The key of a page. Raises Invalid for another name, which could lead to any key."""
        if not _PAGE.fullmatch(name):
            raise Invalid(f"{name!r} is no page's name")
        return f"{self.pages}{name}"

    def pin(self, pin_id: str) -> str:
        """The key of a pin. Raises Invalid for an invalid id, which could lead to any key."""
        name = f"{pin_id}.json"
        if not _PIN.fullmatch(name):
            raise Invalid(f"{pin_id!r} is no pin's id")
        return f"{self.pins}{name}"

    def manifest(self, version: int) -> str:
        """The key of a manifest version, 1 or higher. Raises Invalid."""
        if not 1 <= version <= _VERSION_MAX:
            raise Invalid(f"manifest version {version} is outside [1, 10^20)")
        return f"{self.manifests}{_VERSION_MAX - version:020d}-v{version}.json"

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@lru_cache(maxsize=PARTITIONS_MAX)
def is_topic(folder: str) -> bool:
    """Whether a folder's name can be a topic's name."""
    return _TOPIC.fullmatch(folder) is not None and folder not in (".", "..", ARCHIVE)


@lru_cache(maxsize=PARTITIONS_MAX)
def is_topic_id(folder: str) -> bool:
    """Whether a folder's name can be a topic id."""
    return _TOPIC_ID.fullmatch(folder) is not None


def topic_id_from(seed: bytes) -> str | None:
    """A topic id derived from a seed; None if it would start with a hyphen, which Kafka avoids. Use another seed then."""
    from hashlib import sha256  # takes longer to load than all else here, and shells wait for it

    digest = bytearray(sha256(seed).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x40, digest[8] & 0x3F | 0x80  # the form of a random UUID, as Kafka's ids have it
    text = urlsafe_b64encode(digest).decode().rstrip("=")
    return None if text.startswith("-") else text


def parse_partition(folder: str) -> int | None:
    """The partition number of a folder below a topic id, None for another folder."""
    return int(folder) if _PARTITION.fullmatch(folder) else None


def partition_of(key: str) -> PartitionPath | None:
    """The partition that a key belongs to, None for other keys."""
    topic, _, rest = key.partition("/")
    topic_id, _, rest = rest.partition("/")
    folder, slash, _ = rest.partition("/")
    return _partition_at(topic, topic_id, folder) if slash else None


@lru_cache(maxsize=PARTITIONS_MAX)
def _partition_at(topic: str, topic_id: str, folder: str) -> PartitionPath | None:
    number = parse_partition(folder)
    try:
        return PartitionPath(topic, topic_id, number) if number is not None else None
    except Invalid:
        return None


@dataclass(frozen=True, slots=True)
class WritePath:
    """The folder of a write's outcome records. It is below the first of the write's topics."""

    topic: str
    topic_id: str
    write_id: str

    def __post_init__(self) -> None:
        _ = PartitionPath(self.topic, self.topic_id, 0)
        if not _WRITE.fullmatch(self.write_id):
            raise Invalid(f"{self.write_id!r} is no write's id; give up to 100 letters, digits, dots, hyphens and underscores")

    @property
    def prefix(self) -> str:
        """The prefix of the keys of all attempts."""
        return f"{writes_prefix(self.topic, self.topic_id)}{self.write_id}/"

    @property
    def is_repeatable(self) -> bool:
        """Whether the write has a user's id and can be retried."""
        return not self.write_id.startswith("_")

    def attempt(self, attempt_id: str) -> str:
        """The key of an attempt's record. Raises Invalid for an invalid id."""
        if not _ATTEMPT.fullmatch(f"{attempt_id}.json"):
            raise Invalid(f"{attempt_id!r} is no attempt's id")
        return f"{self.prefix}{attempt_id}.json"


def own_write_id(new_id: str) -> str:
    """The id of a write whose user gave none. Its form differs from every id that a user can give, so it is never retried."""
    return f"_{new_id}"


def writes_prefix(topic: str, topic_id: str) -> str:
    """The prefix of the records of all writes below this topic."""
    return f"{topic}/{topic_id}/writes/"


def write_of(key: str) -> WritePath | None:
    """The write that a key belongs to, None for other keys."""
    topic, _, rest = key.partition("/")
    topic_id, _, rest = rest.partition("/")
    folder, _, rest = rest.partition("/")
    write_id, _, name = rest.partition("/")
    if folder != "writes" or not _ATTEMPT.fullmatch(name):
        return None
    try:
        return WritePath(topic, topic_id, write_id)
    except Invalid:
        return None


def segment_name(base_offset: int, leader_epoch: int, segment_id: str, suffix: str) -> str:
    """The name of a segment's object; `segment_id` is 32 hexadecimal digits, unique for each attempt to copy."""
    return f"{base_offset:020d}-{leader_epoch}-{segment_id}{suffix}"


def parse_segment_name(name: str) -> tuple[int, int, str, str] | None:
    """Base offset, leader epoch, segment id and suffix, or None for another name."""
    match = _SEGMENT.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]), match[3], match[4])


def page_name(base_offset: int, last_base_offset: int, page_id: str) -> str:
    """The name of a page, with the base offsets of its first and last entry; `page_id` is unique for each written page."""
    return f"{base_offset:020d}-{last_base_offset:020d}-{page_id}.parquet"


def parse_page_name(name: str) -> tuple[int, int, str] | None:
    """First and last base offset and page id, or None for another name."""
    match = _PAGE.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]), match[3])


def parse_pin_name(name: str) -> str | None:
    """The id of a pin, or None for another name."""
    match = _PIN.fullmatch(name)
    return None if match is None else match[1]


def check_segment_names(names: Iterable[str]) -> None:
    """Raises ValueError for a name that is not a segment object's; such a name could lead to any key."""
    for name in names:
        if parse_segment_name(name) is None:
            raise ValueError(f"{name!r} is no name of a segment's object")


def check_page_names(names: Iterable[str]) -> None:
    """Raises ValueError for a name that is not a page's; such a name could lead to any key."""
    for name in names:
        if parse_page_name(name) is None:
            raise ValueError(f"{name!r} is no name of a page")


def manifest_of(key: str) -> tuple[PartitionPath, int] | None:
    """The partition and version of a manifest's key, None for other keys."""
    path, version = partition_of(key), parse_manifest_key(key)
    return (path, version) if path is not None and version is not None and key == path.manifest(version) else None


def parse_manifest_key(key: str) -> int | None:
    """The version of a manifest's key or name, None for other keys."""
    match = _MANIFEST.fullmatch(key.rpartition("/")[2])
    if match is None or int(match[1]) + int(match[2]) != _VERSION_MAX:
        return None
    return int(match[2])


@dataclass(frozen=True, slots=True, order=True)
class RegistrationPath:
    """The place of a broker's registration: a broker that is alive puts the next one in its place with each heartbeat.

    `incarnation_id` is 32 hexadecimal digits, new for each start of the broker.
    """

    node_id: int
    incarnation_id: str
    heartbeat: int

    @property
    def key(self) -> str:
        """The key of the registration."""
        return f"{BROKERS}{self.node_id}-{self.incarnation_id}-{self.heartbeat:020d}.json"


def registration_of(key: str) -> RegistrationPath | None:
    """The registration that a key is of, None for other keys."""
    match = _REGISTRATION.fullmatch(key.removeprefix(BROKERS))
    if match is None or not key.startswith(BROKERS):
        return None
    return RegistrationPath(int(match[1]), match[2], int(match[3]))
