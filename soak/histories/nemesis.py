"""The process that is tried, and what happens to it: kills, pauses, a store that fails, a disk that is full."""

import os
import random  # noqa: TID251  # of a seed
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SERVE_WITH = Path(__file__).resolve().parent / "serve_with.py"
STACKS = signal.SIGUSR1
"""Has the process say where its threads are."""
READY_S_MAX, END_S_MAX = 90, 90
UNEXPLAINED, COMPLAINTS_MAX = ("Traceback", "please report it", "offsets are lost"), 10
KEPT_BYTES, DISK_BYTES = 4 << 20, 96 << 20
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.segment.bytes": "1048576",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.migration.policy": "bidirectional",
    # A client that has given up before it hears that it has joined does not leave: its member keeps partitions for a session,
    # which begins anew with each start. With Kafka's 45 s all partitions of a group may be such a member's for the whole round.
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "storage.min.free.bytes": str(KEPT_BYTES),
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.index.size.max.bytes": "65536",
    "remote.log.manager.task.interval.ms": "500",
    "remote.log.manager.task.retry.backoff.max.ms": "2000",
}


@dataclass
class Server:
    """The process of a moment, always at the same address, with its logs and its archive in `folder`."""

    folder: Path
    mutant: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    address: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    spent_s: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    started_s: float = 0
    """How long the last awaited start took."""
    process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.logs = self.folder / "disk" / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def start(self, *, is_awaited: bool = True) -> None:
        """The next life; with `is_awaited` once it serves."""
        said = self.folder / "said"
        begin = said.stat().st_size if said.exists() else 0
        words = [word for name, value in {**SETTINGS, **self.settings}.items() for word in ("-c", f"{name}={value}")]
        mutant = [] if self.mutant is None else ["--mutant", self.mutant]
        state = ["-c", f"agent.state.dir={self.folder / 'state'}"]
        command = [
            sys.executable, str(SERVE_WITH), *mutant, str(self.folder), "serve", "--own-log-dir", str(self.logs), "--archive",
            str(self.folder / "archive"), "--listen", self.address, *words, *state,
        ]  # fmt: skip
        with said.open("ab") as file:
            self.process = subprocess.Popen(command, stderr=file, stdout=file)
        began = time.monotonic()
        until = began + READY_S_MAX
        while is_awaited and b"topics at" not in said.read_bytes()[begin:]:
            if self.process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"it does not start, see {said}")
            time.sleep(0.05)
        self.started_s = time.monotonic() - began if is_awaited else self.started_s

    def end(self, number: signal.Signals) -> None:
        """Ends it by a signal."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            code = self.process.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            self.wrong.append(f"it does not end on {number.name}")
            self.process.kill()
            code = self.process.wait()
        if number is signal.SIGTERM and code:
            self.wrong.append(f"it ends with {code} on {number.name}, see {self.folder / 'said'}")

    def require_alive(self) -> None:
        """Notes that it has ended by itself, and starts it again."""
        if self.process is not None and self.process.poll() is not None:
            self.wrong.append(f"it has ended by itself, with {self.process.returncode}")
            self.start()

    def complaints(self) -> list[str]:
        """What it says that no kill, pause, outage or full disk explains."""
        said = (self.folder / "said").read_text(errors="replace").splitlines()
        return [line for line in said if any(word in line for word in UNEXPLAINED)][:COMPLAINTS_MAX]


@dataclass
class Nemesis:
    """Draws what happens next."""

    server: Server
    chance: random.Random

    def run(self, until_s: float) -> None:
        """Until a time of the monotonic clock."""
        happens = {
            self.kill: 6, self.kill_while_it_starts: 2, self.stop: 1, self.pause: 2, self.long_pause: 2, self.outage: 3,
        }  # fmt: skip
        if self.is_own_disk:
            happens |= {self.full_disk: 2, self.no_room_at_all: 1}
        first = [self.kill, self.long_pause, self.outage]  # in every round
        self.chance.shuffle(first)
        while time.monotonic() < until_s:
            # Where others use the processors, too, clients need as long again to come back as the process needs to start.
            time.sleep(0.5 + self.chance.random() * 4 + self.server.started_s)
            what = first.pop() if first else self.chance.choices([*happens], [*happens.values()])[0]
            self.server.require_alive()
            began = time.monotonic()
            what()
            self.server.counts[what.__name__] += 1
            self.server.spent_s[what.__name__] += round(time.monotonic() - began, 1)

    @property
    def is_own_disk(self) -> bool:
        """Whether the logs are on a volume of their own, which may be filled."""
        return self.server.logs.parent.is_mount()

    def kill(self) -> None:
        self.server.end(signal.SIGKILL)
        time.sleep(self.chance.random() * 0.5)
        self.server.start()

    def kill_while_it_starts(self) -> None:
        self.server.end(signal.SIGKILL)
        self.server.start(is_awaited=False)
        time.sleep(self.chance.random() * 2)
        self.kill()

    def stop(self) -> None:
        self.server.end(signal.SIGTERM)
        self.server.start()

    def pause(self) -> None:
        self._paused(0.2 + self.chance.random())

    def long_pause(self) -> None:
        """Longer than clients wait for an answer: they ask again before it goes on."""
        self._paused(self.chance.choice([3, 4, 7]))

    def _paused(self, seconds: float) -> None:
        assert self.server.process is not None
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.server.process.send_signal(signal.SIGCONT)

    def outage(self) -> None:
        """Nobody answers for the archive, over a kill perhaps."""
        marker = self.server.folder / "store-fails"
        marker.touch()
        try:
            time.sleep(2 + self.chance.random() * 6)
            if self.chance.random() < 0.3:
                self.kill()
        finally:
            marker.unlink()

    def full_disk(self) -> None:
        """Less is free than what is kept free: no records are taken."""
        self._filled(KEPT_BYTES // 2)
        time.sleep(1 + self.chance.random() * 3)
        if self.chance.random() < 0.3:
            self.kill()
        self._freed()

    def no_room_at_all(self) -> None:
        """Nothing can be written, whatever it is: the process may end by itself."""
        self._filled(0)
        time.sleep(1 + self.chance.random() * 2)
        self._freed()
        assert self.server.process is not None
        self.server.end(signal.SIGKILL)
        self.server.start()

    def _filled(self, free: int) -> None:
        ballast = self.server.logs.parent / "ballast"
        with suppress(OSError), ballast.open("wb") as file:
            block = bytes(64 << 10)
            while _free(ballast.parent) > free:
                file.write(block)
                file.flush()

    def _freed(self) -> None:
        (self.server.logs.parent / "ballast").unlink(missing_ok=True)


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
