"""Cuts what a connection receives into frames: a size (int32, big-endian), then so many bytes (Kafka's NetworkReceive)."""

from struct import Struct

from tiering.endpoint.protocol.errors import InvalidRequest

_SIZE = Struct(">i")
SIZE_BYTES = _SIZE.size


class Receive:
    """Bytes that came and are in no frame yet. Memory grows with what comes, not with the size that a frame claims."""

    __slots__ = ("_buffer", "_bytes_max")

    def __init__(self, bytes_max: int) -> None:
        self._buffer = bytearray()
        self._bytes_max = bytes_max

    def __len__(self) -> int:
        return len(self._buffer)

    def allow(self, bytes_max: int) -> None:
        """Frames of up to so many bytes from now on."""
        self._bytes_max = bytes_max

    def add(self, data: bytes) -> None:
        """Takes what came."""
        self._buffer += data

    def frame_size(self) -> int | None:
        """The size of the next frame, None before it is known. Raises InvalidRequest for one that no request may have."""
        if len(self._buffer) < _SIZE.size:
            return None
        size: int = _SIZE.unpack_from(self._buffer)[0]
        if not 0 <= size <= self._bytes_max:
            raise InvalidRequest(
                f"a request of {size} bytes, where {self._bytes_max} are allowed: raise socket.request.max.bytes, unless this is "
                "no Kafka client (TLS and HTTP look like such sizes)"
            )
        return size

    def is_whole(self) -> bool:
        """Whether the next frame is there. Raises InvalidRequest."""
        size = self.frame_size()
        return size is not None and len(self._buffer) >= _SIZE.size + size

    def take(self) -> bytes:
        """The next frame, which must be there, without its size."""
        size = self.frame_size()
        assert size is not None
        end = _SIZE.size + size
        frame = bytes(memoryview(self._buffer)[_SIZE.size : end])
        del self._buffer[:end]
        return frame
