"""Key files for commands to read."""

import base64
import json
from pathlib import Path


def write_keys(file: Path, current: str, **keys: bytes) -> Path:
    """Writes these keys, of which `current` is the one for new data keys, where only their owner may read them."""
    value = {"current": current, "keys": {name: base64.b64encode(key).decode() for name, key in keys.items()}}
    file.write_text(json.dumps(value))
    file.chmod(0o600)
    return file
