"""What every SASL mechanism does on the server's side (Java's SaslServer)."""

from typing import Protocol

from local_log.errors import Invalid


class SaslFailed(Invalid):
    """A client is not authenticated.

    `is_told` says whether the client is told the reason, which then must not help somebody who guesses. Never holds a password
    or token.
    """

    def __init__(self, problem: str, *, is_told: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_told = is_told


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
