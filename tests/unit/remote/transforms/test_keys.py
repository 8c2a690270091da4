"""Key rings: what wraps and unwraps data keys, and where they come from."""

import base64
import json
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap
from encodings_to_try import KEY, KEYS, OLD_KEY
from hypothesis import given
from hypothesis import strategies as st
from seeded_randomness import SeededRandomness

from local_log.errors import BadAddress, Invalid, NoKey, WrongKey
from remote.transforms import key_rings
from remote.transforms.key_rings import open_keys
from remote.transforms.keys import KeyRing, LocalKeyRing, check_key_ring, read_key_ring

DATA_KEY = bytes(range(50, 82))


def text_of(**changes: Any) -> str:
    """The JSON of a key ring, with some of it changed."""
    keys = {"old": base64.b64encode(OLD_KEY).decode(), "new": base64.b64encode(KEY).decode()}
    return json.dumps({"current": "new", "keys": keys, **changes})


# wrapping


@given(st.binary(min_size=32, max_size=32), st.sampled_from(["old", "new"]))
def test_what_a_key_wraps_it_unwraps(data_key: bytes, key_id: str) -> None:
    assert KEYS.unwrap(key_id, KEYS.wrap(key_id, data_key)) == data_key


def test_a_data_key_is_wrapped_as_rfc_3394_says() -> None:
    example = LocalKeyRing("RFC 3394, 4.6", "k", {"k": bytes(range(32))})
    wrapped = example.wrap("k", bytes.fromhex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"))
    assert wrapped.hex() == "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"
    assert aes_key_unwrap(KEY, KEYS.wrap("new", DATA_KEY)) == DATA_KEY


def test_another_key_does_not_unwrap() -> None:
    with pytest.raises(WrongKey) as raised:
        KEYS.unwrap("old", KEYS.wrap("new", DATA_KEY))
    assert (raised.value.key_id, raised.value.place) == ("old", "keys of the tests")


@pytest.mark.parametrize("size", [0, 1, 8, 16, 39, 41, 48])
def test_what_is_no_wrapped_key_does_not_unwrap(size: int) -> None:
    with pytest.raises(WrongKey):
        KEYS.unwrap("new", bytes(size))


@pytest.mark.parametrize("ask", [KEYS.wrap, KEYS.unwrap])
def test_a_key_that_the_ring_lacks_is_named_with_those_that_it_has(ask: Callable[[str, bytes], bytes]) -> None:
    with pytest.raises(NoKey, match=r"key '2024' is needed: keys of the tests has new, old; give keys that have it") as raised:
        ask("2024", DATA_KEY)
    assert raised.value.key_id == "2024"


class Forgets:
    """Unwraps something else than it was given."""

    current = "new"

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        return data_key

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        return bytes(32)


def test_a_key_ring_is_proved_by_its_current_key() -> None:
    check_key_ring(KEYS, SeededRandomness())
    with pytest.raises(NoKey, match="'gone'"):
        check_key_ring(LocalKeyRing("a file", "gone", {"new": KEY}), SeededRandomness())
    with pytest.raises(WrongKey, match="unwraps another data key"):
        check_key_ring(Forgets(), SeededRandomness())


# the form of a key ring


def test_a_key_ring_is_read_from_json() -> None:
    ring = read_key_ring(text_of(), "here")
    assert (ring.current, ring.keys, ring.place) == ("new", {"old": OLD_KEY, "new": KEY}, "here")


def test_nothing_that_prints_a_key_ring_prints_its_keys() -> None:
    ring = read_key_ring(text_of(), "here")
    assert not any(secret in repr(ring) + str(ring) for secret in (repr(KEY), base64.b64encode(KEY).decode(), KEY.hex()))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe\xfd", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an object of current and keys"),
        ('{"keys": {}}', "not an object of current and keys"),
        (text_of(more=1), "not an object of current and keys"),
        (text_of(keys=[]), "not an object of current and keys"),
        (text_of(current="gone"), "current names none of keys"),
        (text_of(current=["new"]), "current names none of keys"),
        (text_of(keys={}), "current names none of keys"),
        (text_of(keys={"new": "c2VjcmV0"}), "key 'new' is not base64 of 32 bytes"),
        (text_of(keys={"new": base64.b64encode(KEY).decode()[:-1]}), "key 'new' is not base64 of 32 bytes"),
        (text_of(keys={"new": "ключ" * 11}), "key 'new' is not base64 of 32 bytes"),
        (text_of(keys={"new": 7}), "key 'new' is not base64 of 32 bytes"),
        (text_of(keys={"": "x"}), "a key id is empty, too long or not printable"),
        (text_of(keys={"a\nb": "x"}), "a key id is empty, too long or not printable"),
        (text_of().replace('"old"', '"new"'), "'new' is there twice"),
    ],
)
def test_what_is_no_key_ring_is_refused_by_what_is_wrong_and_tells_no_secret(text: str | bytes, problem: str) -> None:
    with pytest.raises(Invalid) as raised:
        read_key_ring(text, "here")
    assert str(raised.value).startswith(f"here: {problem}; give ")
    assert raised.value.__cause__ is None
    secrets = [base64.b64encode(KEY).decode()[:20], "c2VjcmV0"]
    assert not any(secret in str(raised.value) for secret in secrets)


# where a key ring comes from


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    file.write_text(text_of())
    file.chmod(0o600)
    return file


def unwraps(ring: KeyRing) -> bool:
    return ring.unwrap("new", KEYS.wrap("new", DATA_KEY)) == DATA_KEY


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_key_file_is_read_by_path_or_url(key_file: Path, scheme: str) -> None:
    ring = open_keys(f"{scheme}{key_file}")
    assert ring.current == "new"
    assert unwraps(ring)


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_a_key_file_may_be_read_by_its_owner_and_group(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    assert unwraps(open_keys(str(key_file)))


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o602, 0o666, 0o601])
def test_a_key_file_that_is_open_to_others_is_refused(key_file: Path, mode: int) -> None:
    key_file.chmod(mode)
    with pytest.raises(Invalid, match=rf"has mode {mode:04o}, .*: run chmod 600 on it"):
        open_keys(str(key_file))


def test_a_key_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(Invalid, match=f"key file '{path}' cannot be read: "):
            open_keys(str(path))


def test_a_key_file_that_is_too_large_is_no_key_file(key_file: Path) -> None:
    key_file.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(Invalid, match="more than 1048576 bytes"):
        open_keys(str(key_file))


def test_a_damaged_key_file_is_refused_by_its_name(key_file: Path) -> None:
    key_file.write_text("{}")
    with pytest.raises(Invalid, match=f"key file '{key_file}': not an object of current and keys"):
        open_keys(str(key_file))


def test_a_key_ring_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RING", text_of())
    assert unwraps(open_keys("env://RING"))
    monkeypatch.delenv("RING")
    with pytest.raises(Invalid, match="the environment has no RING"):
        open_keys("env://RING")


def test_a_package_can_bring_key_rings_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("vault", "encodings_to_try:opened_by_plugin", key_rings.PLUGINS)
    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group: EntryPoints([point] if group == key_rings.PLUGINS else [])
    )
    ring = open_keys("vault://secret/archive")
    assert isinstance(ring, LocalKeyRing)
    assert ring.place == "vault://secret/archive"
    with pytest.raises(BadAddress, match="'volt://x' is not the address of a key ring; there are: a file, env, aws-kms, vault"):
        open_keys("volt://x")


@pytest.mark.parametrize("address", ["file://host/keys.json", "gopher://x", "aws-kms://"])
def test_an_address_that_names_no_key_ring_is_refused(address: str) -> None:
    with pytest.raises(Invalid):
        open_keys(address)
