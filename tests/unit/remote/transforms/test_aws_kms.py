"""A key ring in AWS KMS, against moto's."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from encodings_to_try import log_of, stored, transforms
from made_manifests import PATH
from seeded_randomness import SeededRandomness

from local_log.errors import Invalid, LogError, NoKey, Unavailable, WrongKey
from remote.transforms.aws_kms import AwsKms
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.key_rings import open_keys
from remote.transforms.keys import check_key_ring

DATA_KEY = bytes(range(32))


@pytest.fixture(scope="module")
def kms(s3_server: str) -> Any:
    """boto3's own client of KMS, with a key that has the alias `archive`."""
    import boto3.session

    client = boto3.session.Session().client("kms")
    key = client.create_key()["KeyMetadata"]["KeyId"]
    client.create_alias(AliasName="alias/archive", TargetKeyId=key)
    return client


def arn(kms: Any, key: str = "alias/archive") -> str:
    found: str = kms.describe_key(KeyId=key)["KeyMetadata"]["Arn"]
    return found


def test_the_current_key_is_named_by_its_arn_whatever_the_address_calls_it(kms: Any) -> None:
    for address in ("aws-kms://alias/archive", f"aws-kms://{arn(kms).rpartition('/')[2]}", f"aws-kms://{arn(kms)}"):
        ring = open_keys(address)
        assert ring.current == arn(kms)
        check_key_ring(ring, SeededRandomness())


def test_a_segment_is_encrypted_and_read_with_keys_that_kms_alone_has(kms: Any) -> None:
    ring = open_keys("aws-kms://alias/archive")
    store, entry = stored(b"secret " * 100, b"aux", transforms("zstd+aes-256-gcm", 64, keys=ring))
    assert entry.encoded is not None
    assert entry.encoded.key_id == arn(kms)
    assert DecodedBytes(store, AwsKms("alias/archive")).log(PATH, entry, 0, 700) == b"secret " * 100
    with pytest.raises(NoKey, match="keys of the tests has"):
        log_of(store, entry)


def test_a_key_that_kms_does_not_have_is_no_key(kms: Any) -> None:
    gone = "12345678-1234-1234-1234-123456789012"
    with pytest.raises(NoKey, match="NotFoundException"):
        _ = AwsKms(gone).current
    with pytest.raises(NoKey, match=gone):
        AwsKms("alias/archive").unwrap(gone, AwsKms("alias/archive").wrap(arn(kms), DATA_KEY))


def test_what_another_key_has_wrapped_is_refused(kms: Any) -> None:
    ring, other = AwsKms("alias/archive"), kms.create_key()["KeyMetadata"]["Arn"]
    with pytest.raises(Invalid):
        ring.unwrap(other, ring.wrap(ring.current, DATA_KEY))


class Answers:
    """A client of KMS that answers each call alike."""

    def __init__(self, answer: Exception | bytes) -> None:
        self.answer = answer
        self.calls = 0

    def decrypt(self, **request: Any) -> dict[str, Any]:
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"Plaintext": self.answer}


def asked(client: Answers) -> AwsKms:
    ring = AwsKms("alias/archive")
    ring._client = client
    return ring


def test_a_data_key_is_asked_for_once(kms: Any) -> None:
    client = Answers(DATA_KEY)
    ring = asked(client)
    assert [ring.unwrap("k", b"w"), ring.unwrap("k", b"w"), ring.unwrap("k", b"other")] == [DATA_KEY] * 3
    assert client.calls == 2


def refusal(code: str, status: int = 400) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "why"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Decrypt")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal("IncorrectKeyException"), WrongKey),
        (refusal("InvalidCiphertextException"), WrongKey),
        (refusal("KMSInvalidStateException"), NoKey),
        (refusal("DisabledException"), NoKey),
        (refusal("ThrottlingException"), Unavailable),
        (refusal("AnythingAtAll", 503), Unavailable),
        (refusal("AccessDeniedException"), Invalid),
        (EndpointConnectionError(endpoint_url="there"), Unavailable),
    ],
)
def test_an_error_of_kms_says_what_to_do(kms: Any, answer: Exception, error: type[LogError]) -> None:
    with pytest.raises(error) as raised:
        asked(Answers(answer)).unwrap("key-1", b"w")
    assert type(raised.value) is error
    assert "key-1" in str(raised.value)


def test_no_key_in_the_address_says_what_to_give() -> None:
    with pytest.raises(Invalid, match="aws-kms://alias/archive"):
        open_keys("aws-kms://")
