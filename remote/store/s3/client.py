"""botocore's clients for S3, and the translation of S3's errors to ours.

There are two clients. One sends every request once: `remote.store.retrying` repeats what may be repeated, and a put with
If-None-Match is not repeated here. If the SDK repeated a put whose answer was lost, the caller would get "key taken" for its own
object and would not know that a try got no answer. The other client retries by itself, for the requests inside an upload.

botocore finds credentials, region and endpoint (AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import botocore.session
from botocore import exceptions as sdk
from botocore.config import Config
from botocore.loaders import create_loader

from local_log.errors import AlreadyExists, BadRange, Invalid, LogError, NotFound, Unavailable, Unknown, Unreachable
from remote.store.s3.credentials import AGAIN, CREDENTIAL_REMEDIES, GIVE_CREDENTIALS, NO_CREDENTIALS

connections_max = 32
part_attempts_max = 5
connect_timeout_s = 5
read_timeout_s = 60
region_default = "us-east-1"

once = Config(
    retries={"mode": "standard", "total_max_attempts": 1},
    connect_timeout=connect_timeout_s,
    read_timeout=read_timeout_s,
    max_pool_connections=connections_max,
)
repeating = once.merge(Config(retries={"mode": "standard", "total_max_attempts": part_attempts_max}))

NO_S3: Final = "what answers is no S3 server; check AWS_ENDPOINT_URL"

_not_applied = {"RequestTimeout", "BadDigest", "XAmzContentSHA256Mismatch", "OperationAborted"}
"""Refusals below 500 of a request that might pass when it is made again: nothing was changed."""
_nobody_there = (sdk.EndpointConnectionError, sdk.ProxyConnectionError)
_broken_off = (sdk.HTTPClientError, sdk.ConnectionError, sdk.IncompleteReadError, sdk.FlexibleChecksumError)
_remedies = {
    "NoSuchBucket": "create the bucket, or correct its name",
    "AuthorizationHeaderMalformed": "set AWS_DEFAULT_REGION to the bucket's region",
    "PermanentRedirect": "set AWS_DEFAULT_REGION to the bucket's region",
    "RequestTimeTooSkewed": "set this machine's clock",
    "InvalidObjectState": "bring the object back from cold storage, and keep rules that move objects there off the archive",
}
_remedies_by_status = {
    400: "correct the address; a HEAD is refused so, without a word, where the credentials have expired, too: renew them",
    403: "check the credentials, and that they have s3:GetObject, s3:PutObject, s3:DeleteObject, "
    "s3:AbortMultipartUpload and s3:ListBucket (without the last, S3 says 403 of a missing object too)",
    501: "use a store that supports If-None-Match and CRC32C",
}


class NoSuchUpload(Unavailable):
    """The multipart upload has been aborted or completed meanwhile; another one may pass."""


def make_client(config: Config) -> Any:
    """A client for where the environment says. Raises Invalid."""
    session = botocore.session.get_session()
    session.register_component("data_loader", _services(session.get_config_variable("data_path")))
    region = session.get_config_variable("region") or region_default
    try:
        client = session.create_client("s3", region_name=region, config=config)
        if ".amazonaws." in client.meta.endpoint_url:
            return client
        # Elsewhere than at AWS a bucket seldom has a host name of its own.
        return session.create_client("s3", region_name=region, config=config.merge(Config(s3={"addressing_style": "path"})))
    except ValueError as error:
        raise Invalid(f"{error}; give AWS_ENDPOINT_URL as http://host:port") from error


@cache
def _services(data_path: str | None) -> Any:
    """What the SDK knows of AWS's services: reading it takes several times as long as all else that a client needs."""
    return create_loader(data_path)


@contextmanager
def translated(url: str, key: str, otherwise: type[LogError] = Unavailable) -> Iterator[None]:
    """Turns the SDK's errors into ours; `otherwise` is for a request that may have been applied."""
    where = f"{url}: {key}" if key else url
    try:
        yield
    except sdk.ClientError as error:
        raise _refusal(error.response, where, key, otherwise) from error
    except _nobody_there as error:
        raise Unreachable(f"{where}: {error}; check AWS_ENDPOINT_URL and the network") from error
    except sdk.ConnectTimeoutError as error:
        raise Unavailable(f"{where}: {error}; check AWS_ENDPOINT_URL and the network") from error
    except sdk.SSLError as error:
        raise otherwise(f"{where}: {error}; check AWS_ENDPOINT_URL, http:// or https://, and AWS_CA_BUNDLE") from error
    except _broken_off as error:
        raise otherwise(f"{where}: {error}; {AGAIN}") from error
    except (sdk.CredentialRetrievalError, sdk.MetadataRetrievalError) as error:
        raise Unavailable(f"{where}: {error}; see whether what gives the credentials is well, then run it again") from error
    except NO_CREDENTIALS as error:
        raise Invalid(f"{where}: {error}; {GIVE_CREDENTIALS}") from error
    except sdk.BotoCoreError as error:
        raise Invalid(f"{where}: {error}; correct the address, the credentials or boto3's settings") from error


def _refusal(response: dict[str, Any], where: str, key: str, otherwise: type[LogError]) -> LogError:
    code = response.get("Error", {}).get("Code", "")
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{where}: {status} {code}: {response.get('Error', {}).get('Message', '')}"
    if status == 412:
        return AlreadyExists(key)
    if code == "NoSuchUpload":
        return NoSuchUpload(f"{text}; {AGAIN}")
    if code in _not_applied or status in (409, 429):
        # 409: another conditional request on this key is under way.
        return Unavailable(f"{text}; {AGAIN}")
    if status == 404 and code != "NoSuchBucket":
        # A conditional write says so when a deletion of its key crosses it.
        return Unavailable(f"{text}; {AGAIN}") if otherwise is Unknown else NotFound(text)
    if status >= 500 and status != 501:
        is_a_page = "html" in response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("content-type", "")
        return otherwise(f"{text}; {f'{NO_S3}, or {AGAIN}' if is_a_page else AGAIN}")
    if status == 416:
        return BadRange(text)
    by_code = CREDENTIAL_REMEDIES.get(code) or _remedies.get(code)
    remedy = by_code or _remedies_by_status.get(status, "correct the address or the key")
    return Invalid(f"{text}; {remedy}")
