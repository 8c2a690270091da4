"""`.kafka_cleanshutdown` in a log directory: the broker with this epoch closed all logs of the directory.

One JSON object: `{"version":0,"brokerEpoch":12}`. If the file exists, no log needs recovery. An empty file is from a version
before broker epochs. Source: Kafka's CleanShutdownFileHandler.
"""

import json

from local_log.formats.primitives import INT64_MAX, Buffer

NO_BROKER_EPOCH = -1
_VERSION = 0


def read_broker_epoch(buffer: Buffer) -> int | None:
    """The epoch of the broker that closed the logs; None if the file does not have it. Unknown fields are ignored."""
    try:
        content = json.loads(bytes(buffer))
    except (ValueError, RecursionError):
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    is_epoch = isinstance(epoch, int) and not isinstance(epoch, bool) and -INT64_MAX <= epoch <= INT64_MAX
    return epoch if is_epoch else None


def write_clean_shutdown(broker_epoch: int) -> bytes:
    """The bytes of the file."""
    return json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
