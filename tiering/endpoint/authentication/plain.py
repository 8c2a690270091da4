"""PLAIN (RFC 4616): the client sends name and password in one token; use it over TLS only.

[AUTHZID] NUL NAME NUL PASSWORD
"""

from collections.abc import Callable
from dataclasses import dataclass

from tiering.endpoint.authentication.sasl_server import SaslFailed

HasPassword = Callable[[str, str], bool]
"""Whether a user has this password."""


@dataclass(slots=True)
class PlainServer:
    """One exchange of one token."""

    has_password: HasPassword
    name: str | None = None

    @property
    def expires_ms(self) -> None:
        """A password never expires."""

    def evaluate(self, response: bytes) -> bytes:
        tokens = response.decode("utf-8", "replace").split("\0")
        if len(tokens) != 3:
            problem = f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(tokens), 4)}"
            raise SaslFailed(problem, is_told=True)
        authorization_id, name, password = tokens
        for value, what in ((name, "username"), (password, "password")):
            if not value:
                raise SaslFailed(f"Authentication failed: {what} not specified", is_told=True)
        if not self.has_password(name, password):
            raise SaslFailed("Authentication failed: Invalid username or password", is_told=True)
        if authorization_id not in ("", name):
            problem = "Authentication failed: Client requested an authorization id that is different from username"
            raise SaslFailed(problem, is_told=True)
        self.name = name
        return b""
