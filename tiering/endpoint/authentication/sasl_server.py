"""What every SASL mechanism does on the server's side (Java's SaslServer)."""

from typing import Protocol

from local_log.errors import Invalid


class SaslFailed(Invalid):
    """A client is not authenticated.

    `told` is what the client is told, which must not help somebody who guesses; empty for what is told of all failures. With
    `is_told` it is the problem itself. Never holds a password or token.
    """

    def __init__(self, problem: str, *, is_told: bool = False, told: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.told = problem if is_told else told


class SaslServer(Protocol):
    """One exchange with one client."""

    @property
    def name(self) -> str | None:
        """Who the client is, None before it has proved it."""

    @property
    def expires_ms(self) -> int | None:
        """When its credentials expire, None for those that never do."""

    def evaluate(self, response: bytes) -> bytes:
        """The answer to the client's next token. Raises SaslFailed."""
