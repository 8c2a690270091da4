"""A key ring whose keys stay in AWS KMS, which wraps and unwraps data keys. The only importer of its SDK.

The key that the address names wraps new data keys. Entries state its ARN, so that the alias can be moved to another key later.
Unwrapping states the expected key explicitly, so that KMS rejects a data key that another key has wrapped.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore import exceptions as sdk
from botocore.config import Config

from local_log.errors import Invalid, LogError, NoKey, Unavailable, WrongKey
from remote.lru_cache import LruCache
from remote.store.s3.credentials import AGAIN, CREDENTIAL_REMEDIES, GIVE_CREDENTIALS, NO_CREDENTIALS

UNWRAPPED_KEPT_MAX = 1024
_CONFIG = Config(retries={"mode": "standard", "total_max_attempts": 5}, connect_timeout=10, read_timeout=30)
_CONTEXT = {"kafka-tiering": "data key"}
_gone = {"NotFoundException", "DisabledException", "KMSInvalidStateException", "InvalidKeyUsageException"}
_wrong = {"InvalidCiphertextException", "IncorrectKeyException"}
_busy = {"ThrottlingException", "LimitExceededException", "KMSInternalException", "DependencyTimeoutException"}
_busy |= {"KeyUnavailableException"}


class AwsKms:
    """A `KeyRing` in AWS KMS. Caches unwrapped data keys, so that a segment costs one request however often it is read."""

    def __init__(self, key: str) -> None:
        self._asked = key
        self._client = _client(key)
        self._unwrapped: LruCache[tuple[str, bytes], bytes] = LruCache(UNWRAPPED_KEPT_MAX)
        self._current = ""

    @property
    def current(self) -> str:
        """The ARN of the key that the address names. Raises NoKey, Unavailable, Invalid."""
        if not self._current:
            with _translated(self._asked):
                self._current = self._client.describe_key(KeyId=self._asked)["KeyMetadata"]["Arn"]
        return self._current

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        with _translated(key_id):
            answer = self._client.encrypt(KeyId=key_id, Plaintext=data_key, EncryptionContext=_CONTEXT)
        wrapped: bytes = answer["CiphertextBlob"]
        return wrapped

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        data_key = self._unwrapped.get((key_id, wrapped))
        if data_key is None:
            with _translated(key_id):
                answer = self._client.decrypt(KeyId=key_id, CiphertextBlob=wrapped, EncryptionContext=_CONTEXT)
            data_key = bytes(answer["Plaintext"])
            self._unwrapped.put((key_id, wrapped), data_key)
        return data_key


def _client(key: str) -> Any:
    if not key:
        raise Invalid("aws-kms:// names no key; give its id, alias or ARN, such as aws-kms://alias/archive")
    session = boto3.session.Session()
    region = key.split(":")[3] if key.startswith("arn:") and key.count(":") >= 5 else session.region_name
    try:
        return session.client("kms", region_name=region, config=_CONFIG)
    except (sdk.BotoCoreError, ValueError) as e:
        raise Invalid(f"aws-kms://{key}: {e}; correct the address, or set a region") from e


@contextmanager
def _translated(key_id: str) -> Iterator[None]:
    """Translates the SDK's errors."""
    try:
        yield
    except sdk.ClientError as e:
        raise _refusal(key_id, e.response) from e
    except (sdk.ConnectionError, sdk.HTTPClientError, sdk.CredentialRetrievalError, sdk.MetadataRetrievalError) as e:
        raise Unavailable(f"AWS KMS: {key_id}: {e}; {AGAIN}") from e
    except NO_CREDENTIALS as e:
        raise Invalid(f"AWS KMS: {key_id}: {e}; {GIVE_CREDENTIALS}") from e
    except sdk.BotoCoreError as e:
        raise Invalid(f"AWS KMS: {key_id}: {e}; correct the credentials, the region or boto3's settings") from e


def _refusal(key_id: str, response: dict[str, Any]) -> LogError:
    error = response.get("Error", {})
    code, text = error.get("Code", ""), f"AWS KMS answered {error.get('Code', '')}: {error.get('Message', '')}"
    if code in _wrong:
        return WrongKey(key_id, "AWS KMS")
    if code in _gone:
        return NoKey(key_id, text)
    if code in _busy or response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        return Unavailable(f"{text} ({key_id}); {AGAIN}")
    return Invalid(f"{text} ({key_id}); {CREDENTIAL_REMEDIES.get(code, 'correct the rights to use the key, or the key')}")
