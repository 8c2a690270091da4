"""Key files for commands to read, and what makes an offload use them."""

import base64
import json
from pathlib import Path

ENCODE = {
    "zstd": ("--compress", "zstd"),
    "aes-256-gcm": ("--encrypt",),
    "zstd+aes-256-gcm": ("--compress", "zstd", "--encrypt"),
}
"""The options for each encoding; what encrypts takes --keys, too."""


def write_keys(file: Path, current: str, **keys: bytes) -> Path:
    """Writes these keys, of which `current` is the one for new data keys, where only their owner may read them."""
    value = {"current": current, "keys": {name: base64.b64encode(key).decode() for name, key in keys.items()}}
    file.write_text(json.dumps(value))
    file.chmod(0o600)
    return file
