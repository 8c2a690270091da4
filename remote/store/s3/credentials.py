"""What AWS and its SDK say of credentials that are missing, wrong or over, and what to do about it; for all that asks AWS."""

from collections.abc import Mapping
from typing import Final

from botocore import exceptions as sdk

AGAIN: Final = "run it again later"
GIVE_CREDENTIALS: Final = (
    "give credentials: AWS_PROFILE, or AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, or a role of this machine's"
)
RENEW: Final = "renew the credentials: log in again, or give such as a role renews by itself"

NO_CREDENTIALS: Final = (
    sdk.NoCredentialsError, sdk.PartialCredentialsError, sdk.ProfileNotFound, sdk.ConfigNotFound,
)  # fmt: skip
"""The SDK finds none."""

CREDENTIAL_REMEDIES: Final[Mapping[str, str]] = {
    "ExpiredToken": RENEW,
    "ExpiredTokenException": RENEW,
    "TokenRefreshRequired": RENEW,
    "InvalidToken": RENEW,
    "RequestExpired": RENEW,
    "InvalidAccessKeyId": "give an access key that is still there, of the account that this endpoint is of",
    "UnrecognizedClientException": "give an access key that is still there, of the account that this endpoint is of",
    "SignatureDoesNotMatch": "give the secret key that belongs to the access key",
}
"""By the code of a refusal: S3's names, and those of AWS's other services."""
