"""Manifests as bytes."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from made_manifests import entry, manifest, paged
from manifest_values import manifests

from local_log.errors import Corrupt, Newer
from local_log.formats.checkpoints import EpochEntry
from remote.manifest.codec import decode, encode
from remote.manifest.model import Manifest
from remote.manifest.stamped_json import MAJOR, MINOR, sha256, stamped

KEY = "topic/id/0/manifest/1"

SAMPLE = manifest(
    entry(0, 10, leader_epochs=(EpochEntry(0, 0), EpochEntry(2, 5))),
    entry(20, 30),
    reason="refused: «Größe» \u2028",
    local_log_start_offsets={"b": 7, "a": 0},
    leader_epochs=(EpochEntry(0, 0), EpochEntry(2, 5)),
    put_id="c" * 32,
)


def unstamped(body: bytes) -> dict[str, Any]:
    """The stored form as a value, without its checksum."""
    value: dict[str, Any] = json.loads(body)
    del value["~crc32c"]
    return value


def stored(change: dict[str, Any]) -> bytes:
    """The sample with some of its fields changed in the stored form."""
    return stamped({**unstamped(encode(SAMPLE)), **change})


@given(manifests)
@pytest.mark.slow
def test_a_manifest_comes_back_as_it_was_and_has_one_form_and_one_hash(some: Manifest) -> None:
    body = encode(some)
    again = decode(body, KEY)
    assert again == some
    assert encode(again) == body
    assert sha256(encode(again)) == sha256(body)


def test_the_order_in_which_a_mapping_was_filled_does_not_show() -> None:
    other = {k: SAMPLE.local_log_start_offsets[k] for k in sorted(SAMPLE.local_log_start_offsets)}
    assert list(other) != list(SAMPLE.local_log_start_offsets)
    assert encode(SAMPLE) == encode(decode(stored({"local_log_start_offsets": other}), KEY))


def test_the_stored_form_is_json_that_says_its_format() -> None:
    value = unstamped(encode(SAMPLE))
    assert value["format"] == {"major": MAJOR, "minor": MINOR} == {"major": 1, "minor": 1}
    assert list(value) == sorted(value)
    assert value["leader_epochs"] == [[0, 0], [2, 5]]
    assert value["gaps"] == [{"start": 10, "end": 20, "reason": SAMPLE.gaps[0].reason, "noticed_at_ms": 7}]
    assert value["entries"][0]["aux_ranges"] == {"offset_index": [0, 10, 0]}


def test_fields_of_a_newer_writer_are_kept() -> None:
    value = unstamped(encode(SAMPLE))
    value |= {"signatures": [{"by": 0}], "archived_by": []}
    value["format"]["minor"] = 7
    value["entries"][0] |= {"keys": ["k1"], "encryption": None}
    again = json.loads(encode(decode(stamped(value), KEY)))
    assert again["signatures"] == [{"by": 0}]
    assert again["archived_by"] == []
    assert (again["entries"][0]["keys"], again["entries"][0]["encryption"]) == (["k1"], None)
    assert again["entries"][1] == value["entries"][1]


def test_fields_of_a_newer_writer_in_a_gap_are_kept() -> None:
    value = unstamped(encode(SAMPLE))
    value["gaps"][0]["noticed_by"] = "scrub"
    assert json.loads(encode(decode(stamped(value), KEY)))["gaps"] == value["gaps"]


def test_a_newer_major_version_is_refused_by_name() -> None:
    with pytest.raises(Newer, match=KEY):
        decode(stored({"format": {"major": MAJOR + 1, "minor": 0}, "entries": "of another shape"}), KEY)


def assert_corrupt(body: bytes) -> None:
    with pytest.raises(Corrupt) as raised:
        decode(body, KEY)
    assert raised.value.file == KEY


def test_a_manifest_with_any_byte_changed_is_corrupt_or_of_a_newer_format() -> None:
    body = encode(SAMPLE)
    for at in range(len(body) - 1):
        for bit in (1, 4, 32):
            with pytest.raises((Corrupt, Newer), match=KEY):
                decode(body[:at] + bytes([body[at] ^ bit]) + body[at + 1 :], KEY)


def test_a_manifest_without_its_checksum_is_corrupt() -> None:
    assert_corrupt(json.dumps(unstamped(encode(SAMPLE))).encode())


def test_a_truncated_manifest_is_corrupt_wherever_it_is_cut() -> None:
    body = encode(SAMPLE)
    for end in {*range(0, len(body) - 1, 50), len(body) - 2}:
        assert_corrupt(body[:end])


@pytest.mark.parametrize(
    "body", [b"", b"\n", b"\0" * 50, b"\xff\xfe{}", b"{'a': 1}", b"[]", b"1", b"null", b'"manifest"', b"{}{}"]
)
def test_what_is_no_json_object_is_corrupt(body: bytes) -> None:
    assert_corrupt(body)


@pytest.mark.parametrize("form", [None, 1, [], {}, {"major": "1"}, {"major": None}, {"minor": 0}])
def test_a_manifest_without_a_format_is_corrupt(form: object) -> None:
    assert_corrupt(stored({"format": form}))


@pytest.mark.parametrize(
    "body", [b"[" * 10_000, b'{"a":' * 10_000, b"[" * 10_000 + b"]" * 10_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000]
)
def test_json_nested_ten_thousand_deep_is_corrupt(body: bytes) -> None:
    assert_corrupt(body)
    assert_corrupt(encode(SAMPLE).rstrip()[:-1] + b',"x":' + body + b"}")


WRONG = (None, "text", 5, 1.5, True, [], {}, [5], {"a": "b"})


def accepted(fields: dict[str, Any], put: Callable[[dict[str, Any], str, object], None]) -> list[tuple[str, object]]:
    """The changes of a field to a value of another type (or its absence) that decode lets pass."""
    passed: list[tuple[str, object]] = []
    for name, good in fields.items():
        for wrong in (w for w in WRONG if type(w) is not type(good)):
            value = unstamped(encode(SAMPLE))
            put(value, name, wrong)
            try:
                decode(stamped(value), KEY)
            except Corrupt as e:
                assert e.file == KEY  # noqa: PT017  # the loop goes on to the next field
            else:
                passed.append((name, wrong))
    return passed


def test_a_field_of_another_type_is_corrupt() -> None:
    fields = {name: good for name, good in unstamped(encode(SAMPLE)).items() if name != "format"}
    assert accepted(fields, lambda value, name, wrong: value.update({name: wrong})) == []


def test_a_field_of_an_entry_of_another_type_is_corrupt() -> None:
    fields = unstamped(encode(SAMPLE))["entries"][0]
    assert accepted(fields, lambda value, name, wrong: value["entries"][0].update({name: wrong})) == []


def test_a_field_of_a_gap_of_another_type_is_corrupt() -> None:
    fields = unstamped(encode(SAMPLE))["gaps"][0]
    assert accepted(fields, lambda value, name, wrong: value["gaps"][0].update({name: wrong})) == []


@pytest.mark.parametrize("where", ["manifest", "entry", "gap"])
def test_what_lacks_a_field_is_corrupt(where: str) -> None:
    def part(value: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {"manifest": value, "entry": value["entries"][1], "gap": value["gaps"][0]}[where]
        return found

    for name in part(unstamped(encode(SAMPLE))):
        value = unstamped(encode(SAMPLE))
        del part(value)[name]
        assert_corrupt(stamped(value))


@pytest.mark.parametrize("wrong", [[[5]], [["a", "b"]], [[1, 2, 3]], [None], [{}], [[]]], ids=repr)
@pytest.mark.parametrize("name", ["entries", "gaps", "leader_epochs"])
def test_lists_of_another_shape_are_corrupt(name: str, wrong: object) -> None:
    assert_corrupt(stored({name: wrong}))


@pytest.mark.parametrize(
    "ranges",
    [
        {"offset_index": 5},
        {"offset_index": [1]},
        {"offset_index": [1, 2]},
        {"offset_index": [1, 2, 3, 4]},
        {"x": ["a", "b", "c"]},
    ],
)
def test_aux_ranges_of_another_shape_are_corrupt(ranges: object) -> None:
    value = unstamped(encode(SAMPLE))
    value["entries"][0]["aux_ranges"] = ranges
    assert_corrupt(stamped(value))


@pytest.mark.parametrize("name", ["log_name", "aux_name"])
@pytest.mark.parametrize(
    "leads", ["../../../../etc/passwd", "/etc/passwd", "", "a.log", "00000000000000000000-0-" + "a" * 32 + ".log/.."]
)
def test_an_entry_whose_name_leads_elsewhere_is_corrupt(name: str, leads: str) -> None:
    entries = unstamped(encode(SAMPLE))["entries"]
    with pytest.raises(Corrupt, match=r"is no name of a segment's object.*; restore it from a copy") as raised:
        decode(stored({"entries": [{**entries[0], name: leads}, *entries[1:]]}), KEY)
    assert raised.value.file == KEY


@pytest.mark.parametrize("change", [{"topic": "../../etc"}, {"topic": "a/b"}, {"topic_id": ".."}, {"topic_id": "A" * 21 + "/"}])
def test_a_manifest_of_a_topic_that_leads_elsewhere_is_corrupt(change: dict[str, Any]) -> None:
    with pytest.raises(Corrupt, match="restore it from a copy"):
        decode(stored(change), KEY)


def test_a_page_whose_name_leads_elsewhere_is_corrupt() -> None:
    ref = unstamped(encode(manifest(pages=(paged(entry(0, 10)),))))["pages"][0]
    with pytest.raises(Corrupt, match="is no name of a page"):
        decode(stored({"pages": [{**ref, "name": "../../../../etc/passwd"}]}), KEY)


def test_a_manifest_from_before_there_were_pages_is_read() -> None:
    value = unstamped(encode(SAMPLE))
    del value["pages"], value["deleting"]
    assert decode(json.dumps({**value, "format": {"major": 1, "minor": 0}}).encode(), KEY) == SAMPLE
