"""Every key of the archive."""

from collections.abc import Callable

import pytest
from archive_fakes import MemoryStore
from hypothesis import given
from hypothesis import strategies as st
from made_manifests import PATH, TOPIC_ID

from local_log.errors import Invalid
from remote.keys import (
    ARCHIVE,
    AUX,
    LOG,
    PartitionPath,
    page_name,
    parse_manifest_key,
    parse_page_name,
    parse_pin_name,
    parse_segment_name,
    segment_name,
)
from remote.manifest.store import newest_version
from remote.store.shared import check_key

VERSION_MAX = 10**20 - 1
SEGMENT_ID = "0123456789abcdef" * 2

offsets = st.integers(0, 2**63 - 1)
epochs = st.integers(-1, 2**31 - 1)
segment_ids = st.text("0123456789abcdef", min_size=32, max_size=32)
suffixes = st.sampled_from([LOG, AUX])
versions = st.integers(1, VERSION_MAX)


@given(offsets, epochs, segment_ids, suffixes)
def test_a_segments_name_parses_to_what_it_was_made_of(offset: int, epoch: int, segment_id: str, suffix: str) -> None:
    assert parse_segment_name(segment_name(offset, epoch, segment_id, suffix)) == (offset, epoch, segment_id, suffix)


@given(offsets, offsets, segment_ids)
def test_a_pages_name_parses_to_what_it_was_made_of(base: int, last: int, page_id: str) -> None:
    name = page_name(base, last, page_id)
    assert parse_page_name(name) == (base, last, page_id)
    assert PATH.page(name) == f"{PATH.pages}{name}"


@given(segment_ids)
def test_a_pins_name_parses_to_its_id(pin_id: str) -> None:
    assert parse_pin_name(PATH.pin(pin_id).removeprefix(PATH.pins)) == pin_id


@pytest.mark.parametrize("name", ["", "..", "../x", f"{'a' * 32}/", "A" * 32, "a" * 31, f"{'a' * 32}.json", f"{'a' * 32}\n"])
def test_a_page_or_pin_that_could_lead_elsewhere_is_refused(name: str) -> None:
    for make in (PATH.page, PATH.pin):
        with pytest.raises(Invalid):
            make(name)
        with pytest.raises(Invalid):
            make(f"../{name}")
    assert parse_page_name(name) is None
    assert parse_pin_name(name) is None or name == f"{'a' * 32}.json"


def test_pages_are_listed_behind_all_manifests() -> None:
    assert PATH.pages.startswith(PATH.manifests)
    assert PATH.manifest(1) < PATH.page(page_name(0, 0, SEGMENT_ID))


@given(versions)
def test_a_manifests_key_parses_to_its_version(version: int) -> None:
    key = PATH.manifest(version)
    assert parse_manifest_key(key) == parse_manifest_key(key.removeprefix(PATH.manifests)) == version


@given(st.lists(versions, unique=True, min_size=2))
def test_keys_of_manifests_sort_from_the_newest_to_the_oldest(found: list[int]) -> None:
    assert sorted(PATH.manifest(version) for version in found) == [PATH.manifest(v) for v in sorted(found, reverse=True)]


@pytest.mark.parametrize("versions", [(1, 2), (9, 10), (99, 100, 101), (1, 10**19, VERSION_MAX)])
def test_the_newest_version_is_the_first_key_that_a_store_lists(versions: tuple[int, ...]) -> None:
    store = MemoryStore()
    for version in versions:
        store.put_if_absent(PATH.manifest(version), b"")
    assert newest_version(store, PATH) == max(versions)


def test_the_longest_key_fits_every_store() -> None:
    path = PartitionPath("t" * 249, TOPIC_ID, 2**31 - 1)
    check_key(path.segment(segment_name(2**63 - 1, 2**31 - 1, SEGMENT_ID, LOG)))
    check_key(path.manifest(1))
    check_key(path.page(page_name(2**63 - 1, 2**63 - 1, SEGMENT_ID)))


def test_keys_of_a_partition_are_below_its_prefix_and_keys_of_manifests_below_theirs() -> None:
    assert PATH.prefix == f"topic/{TOPIC_ID}/0/"
    assert PATH.segment(segment_name(5, 3, SEGMENT_ID, AUX)) == f"{PATH.prefix}segments/{5:020d}-3-{SEGMENT_ID}.aux"
    assert PATH.manifest(12) == f"{PATH.prefix}manifest/99999999999999999987-v12.json"
    assert str(PATH) == "topic-0"


@pytest.mark.parametrize("topic", ["", ".", "..", ARCHIVE, "a/b", "../a", "a b", "ä", "t" * 250, "a\n", "a\0b"])
def test_a_topic_that_kafka_would_not_name_so_is_refused(topic: str) -> None:
    with pytest.raises(Invalid):
        PartitionPath(topic, TOPIC_ID, 0)


@pytest.mark.parametrize("topic_id", ["", "A" * 21, "A" * 23, "A" * 21 + "/", "A" * 21 + "=", "." * 22, "A" * 22 + "\n"])
def test_what_is_no_topic_id_is_refused(topic_id: str) -> None:
    with pytest.raises(Invalid):
        PartitionPath("topic", topic_id, 0)


GOOD = segment_name(5, 3, SEGMENT_ID, LOG)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        f"../{GOOD}",
        f"a/{GOOD}",
        f"/{GOOD}",
        f"{GOOD}/..",
        f"{GOOD}\n",
        GOOD.replace(LOG, ".json"),
        GOOD.removesuffix(LOG),
        GOOD[1:],
        "0" + GOOD,
        GOOD.upper(),
        GOOD.replace("-3-", "--2-"),
        GOOD.replace("-3-", "--"),
        GOOD.replace("-3-", "-3-3-"),
        f"{GOOD}.log",
    ],
)
def test_a_name_that_leads_elsewhere_is_no_segments(name: str) -> None:
    assert parse_segment_name(name) is None
    with pytest.raises(Invalid):
        PATH.segment(name)


@pytest.mark.parametrize("name", ["٣" * 20 + GOOD[20:], GOOD.replace("-3-", "-٣-"), GOOD.replace("-3-", "-03-")])
def test_a_name_that_would_not_be_made_again_is_no_segments(name: str) -> None:
    assert parse_segment_name(name) is None


@pytest.mark.parametrize("version", [0, -1, VERSION_MAX + 1])
def test_a_version_that_has_no_key_is_refused(version: int) -> None:
    with pytest.raises(Invalid):
        PATH.manifest(version)


KEY = PATH.manifest(12)

foreign: list[Callable[[str], str]] = [
    lambda key: key.replace("v12", "v13"),
    lambda key: key.replace(".json", ".json.tmp"),
    lambda key: key.replace(".json", ".parquet"),
    lambda key: key + "\n",
    lambda key: key.replace("manifest/9", "manifest/"),
    lambda key: key.replace("-v12", ""),
    lambda key: key.replace("v12", "v-12"),
    lambda key: key + "/",
    lambda _: "",
    lambda key: key.replace("v12", "v٣"),
    lambda key: key.replace("v12", "v012"),
    lambda key: key.replace("87-v12", "99-v0"),
]


@pytest.mark.parametrize("change", foreign)
def test_a_foreign_key_among_the_manifests_stands_for_no_version(change: Callable[[str], str]) -> None:
    assert parse_manifest_key(change(KEY)) is None
