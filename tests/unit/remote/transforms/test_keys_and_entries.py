"""What a reader is told when the keys are not those, or the entry contradicts itself."""

import base64
from dataclasses import replace

import pytest
from archive_fakes import MemoryStore
from encodings_to_try import ENCODED, ENCRYPTED, KEY, OLD_KEY, aux_of, finding, log_of, stored, transforms, with_encoding
from hypothesis import given
from hypothesis import strategies as st
from made_manifests import PATH

from local_log.errors import Invalid, NoKey, WrongKey
from remote.manifest.segment_entry import SegmentEntry
from remote.transforms.keys import LocalKeyRing

LOG = bytes(n % 7 * n % 256 for n in range(450))
AUX = b"offsets " * 20 + b"times " * 20


def archived(encoding: str) -> tuple[MemoryStore, SegmentEntry]:
    return stored(LOG, AUX, transforms(encoding, 100), (160, 280))


# keys


@pytest.mark.parametrize("encoding", ENCRYPTED)
def test_a_wrong_key_says_so_and_names_key_and_object(encoding: str) -> None:
    store, entry = archived(encoding)
    with pytest.raises(WrongKey) as raised:
        log_of(store, entry, LocalKeyRing("a file", "new", {"new": OLD_KEY}))
    assert (raised.value.key_id, raised.value.place) == ("new", "a file")
    assert raised.value.file == PATH.segment(entry.log_name)
    assert str(raised.value).startswith(f"{raised.value.file}: key 'new' of a file does not unwrap the data key; give the key")
    assert store.calls == []


@pytest.mark.parametrize(("keys", "reason"), [(None, "no keys"), (LocalKeyRing("a file", "old", {"old": KEY}), "a file has old")])
def test_a_key_that_is_not_at_hand_is_named_with_what_is(keys: LocalKeyRing | None, reason: str) -> None:
    store, entry = archived("aes-256-gcm")
    with pytest.raises(NoKey, match=reason) as raised:
        aux_of(store, entry, keys)
    assert (raised.value.key_id, raised.value.file) == ("new", PATH.segment(entry.log_name))
    assert "key 'new' is needed" in str(raised.value)


def test_what_is_only_compressed_needs_no_key() -> None:
    assert log_of(*archived("zstd"), None) == LOG


# the entry


def test_an_encoding_that_we_do_not_know_says_upgrade() -> None:
    store, entry = archived("zstd")
    with pytest.raises(Invalid, match="'brotli', which this version does not read: upgrade"):
        log_of(store, replace(entry, encoding="brotli"))


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("other", ENCODED)
def test_an_entry_that_names_another_encoding_gives_out_nothing(encoding: str, other: str) -> None:
    store, entry = archived(encoding)
    if encoding != other:
        finding(store, replace(entry, encoding=other))


@pytest.mark.parametrize("encoding", ENCRYPTED)
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"chunk_index": "no base64!"}, "the chunk index in its entry is not base64"),
        ({"chunk_index": ""}, "takes 22 bytes"),
        ({"wrapped_key": "*"}, "the wrapped key in its entry is not base64"),
        ({"nonce": "AAAA"}, "a nonce of 3"),
        ({"nonce": base64.b64encode(bytes(12)).decode()}, "chunk 0 of 5"),
        ({"log_size": 1}, "its entry states 450 in 1"),
        ({"key_id": ""}, "does not say how it is encoded"),
        ({"aux_lengths": ()}, "0 lengths for 2 chunks"),
        ({"aux_lengths": (1 << 60, 1)}, "cannot hold"),
        ({"aux_lengths": (-1, 1)}, "cannot hold"),
    ],
)
def test_an_entry_that_contradicts_itself_is_corrupt(encoding: str, fields: dict[str, object], problem: str) -> None:
    store, entry = archived(encoding)
    found = finding(store, with_encoding(entry, **fields))
    assert problem in found.problem
    assert found.file in (PATH.segment(entry.log_name), PATH.segment(entry.aux_name))


def test_an_entry_without_the_details_of_its_encoding_is_corrupt() -> None:
    store, entry = archived("zstd")
    assert "does not say how" in finding(store, replace(entry, encoded=None)).problem


def test_an_entry_with_a_strange_segment_id_is_corrupt() -> None:
    store, entry = archived("aes-256-gcm")
    assert "'../..'" in finding(store, replace(entry, segment_id="../..")).problem


@given(st.integers(0, 39), st.integers(0, 7))
def test_a_wrapped_key_with_any_bit_flipped_does_not_unwrap(at: int, bit: int) -> None:
    store, entry = archived("aes-256-gcm")
    assert entry.encoded is not None
    wrapped = bytearray(base64.b64decode(entry.encoded.wrapped_key))
    wrapped[at] ^= 1 << bit
    with pytest.raises(WrongKey, match="restore the manifest"):
        log_of(store, with_encoding(entry, wrapped_key=base64.b64encode(wrapped).decode()))
