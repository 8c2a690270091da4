"""What an agent of 1,000 idle partitions costs: its processor time in a minute, alone and scraped each 5 s, and its memory.

    python soak/idle_agent.py [--partitions 1000] [--seconds 30] [--own] [--out idle-out]

Prints JSON: `percent_of_a_core` is to stay below 2. With --own the agent owns the log directory, whose logs are empty; it is
killed before it is measured, so that it has recovered them all.
"""

import argparse
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent)]

import real_kafka  # noqa: E402
from golden_logs import broker_logs  # noqa: E402

from local_log.engine.manager.config import ManagerConfig  # noqa: E402
from local_log.errors import Unavailable  # noqa: E402
from tiering.agent.http import client as http_client  # noqa: E402
from tiering.local_tier.opening import local_tier  # noqa: E402

GOLDEN, END = "g-codec-lz4-0", 4_000
PER_TOPIC = 20
BEGIN_S_MAX = 600


def fill(logs: Path, out: Path, partitions: int) -> None:
    """Partitions of one inactive segment each, all of them the same files."""
    source = broker_logs(out, GOLDEN) / GOLDEN
    lines = []
    for n in range(partitions):
        topic, number = f"topic{n // PER_TOPIC}", n % PER_TOPIC
        folder = logs / f"{topic}-{number}"
        folder.mkdir(parents=True)
        for file in source.iterdir():
            if file.name == "partition.metadata":
                (folder / file.name).write_text(f"version: 0\ntopic_id: {f'A{n // PER_TOPIC}':A<22}\n")
            else:
                os.link(file, folder / file.name)
        lines.append(f"{topic} {number} {END}")
    (logs / "replication-offset-checkpoint").write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def fill_own(logs: Path, partitions: int) -> None:
    """Empty partitions of a directory that no broker uses."""
    tier = local_tier(ManagerConfig(log_dirs=(str(logs),)), lambda topic: {})
    tier.start()
    for n in range(0, partitions, PER_TOPIC):
        tier.create_topic(f"topic{n // PER_TOPIC}", min(PER_TOPIC, partitions - n))
    tier.stop()


def killed(words: list[str], address: str) -> None:
    """An agent is killed when it has opened all logs."""
    with subprocess.Popen([sys.executable, "-m", "tiering", "agent", *words], cwd=HERE.parent) as agent:
        while not is_ready(address):
            time.sleep(0.1)
        agent.kill()


def is_ready(address: str) -> bool:
    try:
        return bool(http_client.ask(address, "GET", "/status")["state"] == "running")
    except Unavailable:
        return False


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--own", action="store_true", help="the agent owns the log directory")
    parser.add_argument("--out", type=Path, default=Path("idle-out"))
    given = parser.parse_args()
    out = given.out.resolve()
    if out.exists():
        parser.error(f"{out} is there already; move it away, or say --out")
    out.mkdir(parents=True)
    if given.own:
        fill_own(out / "logs", given.partitions)
    else:
        fill(out / "logs", out, given.partitions)
    address = f"127.0.0.1:{real_kafka.free_ports()[0]}"
    settings = {
        "log.dirs": out / "logs", "archive.url": out / "archive", "agent.state.dir": out / "state", "agent.http.address": address,
    }  # fmt: skip
    words = [word for name, value in settings.items() for word in ("--override", f"{name}={value}")]
    if given.own:
        words += ["--override", "own.log.dirs=true"]
        killed(words, address)
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-m", "tiering", "agent", *words], cwd=HERE.parent) as agent:
        while not is_ready(address):
            time.sleep(0.1)
        ready_s = time.monotonic() - began
        while not is_idle(address):
            if time.monotonic() - began > BEGIN_S_MAX or agent.poll() is not None:
                raise RuntimeError("the agent does not come to rest")
            time.sleep(1)
        rested_s = time.monotonic() - began
        alone = spent(agent.pid, address, given.seconds, scrape_s=None)
        scraped = spent(agent.pid, address, given.seconds, scrape_s=5)
        resident = int(Path(f"/proc/{agent.pid}/status").read_text().partition("VmRSS:")[2].split()[0])
        agent.send_signal(signal.SIGTERM)
    report = {
        "partitions": given.partitions,
        "seconds_until_it_runs": round(ready_s, 1),
        "seconds_until_all_was_archived_and_scrubbed": round(rested_s, 1),
        "percent_of_a_core": alone,
        "percent_of_a_core_scraped": scraped,
        "resident_mib": resident >> 10,
    }
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    shutil.rmtree(out)


def is_idle(address: str) -> bool:
    try:
        status = http_client.ask(address, "GET", "/status")
    except Unavailable:
        return False
    return bool(status["last_scrub"] and status["last_sweep_ms"]) and not (status["running"] or status["lag_segments"])


def spent(pid: int, address: str, seconds: int, scrape_s: int | None) -> float:
    before = processor_s(pid)
    for at in range(seconds):
        time.sleep(1)
        if scrape_s is not None and at % scrape_s == 0:
            connection = http.client.HTTPConnection(*address.split(":"), timeout=10)
            connection.request("GET", "/metrics")
            connection.getresponse().read()
            connection.close()
    return round((processor_s(pid) - before) / seconds * 100, 2)


if __name__ == "__main__":
    main()
