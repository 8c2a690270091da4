"""Detects secrets in a configuration. They are rejected and never repeated in a message.

A configuration only says where secrets are: `archive.keys` is an address, and the SDKs find credentials (AWS_…, a profile, a
role). So no valid value is a secret, and a secret in the configuration can be detected.
"""

import re

MASK = "***"

REMEDY = (
    "a secret does not belong in a configuration: use the SDK's own variables (AWS_…), files or roles for credentials, "
    "and set archive.keys to an address, such as a file of mode 600, env://NAME or aws-kms://KEY"
)

_NAME = re.compile(
    r"passw(or)?d|passphrase|secret|credential|token|jaas|(access|private|account|api|shared|encryption|master)[._-]?key(?!s)",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<=//)[^/?#\s@:]*:[^?#\s]*@|(?<=https://)[^/?#\s]*@|(?<=http://)[^/?#\s]*@")
_PARAMETER = re.compile(
    r"(?<=[?&;])((?:sig|signature|x-amz-[a-z-]+|[a-z_-]*(?:token|password|secret|key))=)[^&;#\s]*", re.IGNORECASE
)
_MATERIAL = re.compile(
    r"-----BEGIN[^\n]*"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+"
    r"|(?<![A-Za-z0-9+/._-])(?=[^=\s]*[0-9])(?=[^=\s]*[A-Z])(?=[^=\s]*[a-z])[A-Za-z0-9+][A-Za-z0-9+/]{39,}={0,2}(?![A-Za-z0-9+/=._*-])"
    r"|(?<![A-Za-z0-9+/._-])[A-Za-z0-9+/]{42}[A-Za-z0-9+/]=(?!=)",
)


def names_a_secret(name: str) -> bool:
    """Whether a setting of this name would hold a password, a token or a key."""
    return _NAME.search(name) is not None


def holds_a_secret(text: str) -> bool:
    """Whether a value is a secret or carries one: credentials in an address, key material, a key ring instead of its address."""
    return masked(text) != text or text.lstrip().startswith("{")


def masked(text: str) -> str:
    """The text with `***` for what is secret in it."""
    text = _USER.sub(f"{MASK}@", text)
    text = _PARAMETER.sub(rf"\1{MASK}", text)
    return _MATERIAL.sub(MASK, text)
