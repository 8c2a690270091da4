"""An identity provider for tests: its keys, and tokens that it signs."""

import json
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey


class Provider:
    """With a key of RSA and one of an elliptic curve."""

    def __init__(self) -> None:
        self.rsa = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
        self.ec = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})

    def key_set(self) -> bytes:
        return json.dumps(KeySet([self.rsa, self.ec]).as_dict(private=False)).encode()

    def write_keys(self, path: Path) -> str:
        path.write_bytes(self.key_set())
        return str(path)

    def token(self, now_ms: int, key: str = "rsa", algorithm: str = "RS256", **claims: Any) -> str:
        known = {"sub": "alice", "iss": "https://id.example", "aud": "kafka", "iat": now_ms // 1000, "exp": now_ms // 1000 + 600}
        given = {name: value for name, value in (known | claims).items() if value is not None}
        return jwt.encode({"alg": algorithm, "kid": key}, given, self.rsa if key == "rsa" else self.ec, [algorithm])
