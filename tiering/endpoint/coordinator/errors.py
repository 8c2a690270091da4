"""What a group coordinator refuses."""

from tiering.endpoint.protocol.errors import ErrorCode


class GroupError(Exception):
    """A request that is answered with an error code, and with a message where the answer has one."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message
