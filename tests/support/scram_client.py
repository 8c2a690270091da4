"""The client's side of SCRAM, to test the server's."""

import hashlib
import hmac
from base64 import b64decode, b64encode

from tiering.endpoint.authentication.scram import ScramMechanism


class ScramClient:
    """One exchange."""

    def __init__(self, mechanism: ScramMechanism, name: str, password: str) -> None:
        self._hash, self._password = mechanism.hash_name, password
        self._bare = f"n={name.replace('=', '=3D').replace(',', '=2C')},r=client"
        self._signature = b""

    def first(self) -> bytes:
        return b"n,," + self._bare.encode()

    def final(self, server_first: bytes, *, nonce: str | None = None, binding: str = "biws") -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        without_proof = f"c={binding},r={nonce or fields['r']}"
        signed = f"{self._bare},{server_first.decode()},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", self._hash), signed, self._hash)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        assert server_final == b"v=" + b64encode(self._signature)
