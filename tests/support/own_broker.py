"""`tiering serve --own-log-dir` as a process that can be killed and started again, always at the same address."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import quick

READY_S_MAX = 60
_STARTS = "from tiering.cli import main; main()"


class OwnBroker:
    """The process of a moment; it runs. `starts` is the program, if it is to be another one than `tiering`."""

    def __init__(self, folder: Path, *settings: str, options: tuple[str, ...] = (), starts: str = _STARTS) -> None:
        quick.starts_a_server()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.logs = folder / "logs"
        self._said = folder / "said"
        own = ("serve", "--own-log-dir", str(self.logs), "--listen", self.address, *options)
        self._command = [sys.executable, "-c", starts, *own, *(word for one in settings for word in ("-c", one))]
        self.start()

    def start(self) -> None:
        """Until it takes requests."""
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(self._command, stderr=said, stdout=said)
        until = time.monotonic() + READY_S_MAX
        while "topics at" not in self.said:
            assert time.monotonic() < until, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.05)

    @property
    def said(self) -> str:
        """What the process of this moment has written."""
        return self._said.read_text()

    def end(self, number: signal.Signals) -> str:
        """What it has said when it is gone."""
        self.process.send_signal(number)
        self.process.wait(60)
        return self.said

    def close(self) -> None:
        """Ends it, however it is."""
        self.process.kill()
        self.process.wait()
