"""What a transaction coordinator refuses."""

from tiering.endpoint.protocol.errors import ErrorCode


class TransactionError(Exception):
    """A request that is answered with an error code."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code)
        self.code = code
