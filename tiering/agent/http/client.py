"""Asks a running agent."""

import json
from typing import Any, Final

from local_log.errors import Unavailable

WAIT_S: Final = 15.0
ANSWER_BYTES_MAX: Final = 64 << 20


def ask(address: str, method: str, path: str, token: str = "") -> dict[str, Any]:
    """What the agent at HOST:PORT answers, which is JSON; `token` is its, where it has one.

    Raises Unavailable where there is none, or something else.
    """
    from http.client import HTTPConnection, HTTPException  # `status` loads this module where no agent runs, too

    host, _, port = address.rpartition(":")
    connection = HTTPConnection(host.strip("[]"), int(port or 0), timeout=WAIT_S)
    try:
        connection.request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX)
        if answer.status != 200:
            said = body[:200].decode(errors="replace").strip()
            raise Unavailable(f"{address}{path}: {answer.status} {said}; see the output of the agent")
        row = json.loads(body)
    except (OSError, HTTPException, ValueError) as e:
        raise Unavailable(f"{address}: no agent responds there ({e}); is it running, and is this its agent.http.address?") from e
    finally:
        connection.close()
    if not isinstance(row, dict):
        raise Unavailable(f"{address}{path}: this is not an agent; correct agent.http.address")
    return row
