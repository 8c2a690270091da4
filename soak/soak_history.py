"""Clients of an endpoint that is killed, paused and starved, and what they were told: `make soak ARGS="--history"`.

    python soak/soak_history.py [--minutes 10] [--round 60] [--seed 1] [--mutant NAME | --mutants] [--out soak-out]
    python soak/soak_history.py --check soak-out/history.jsonl

Each round begins with an empty directory. Producers of all kinds, members of groups of both protocols and applications that
read and write in transactions note what they ask and are told, while `tiering serve --own-log-dir` is killed, killed while it
recovers, paused, without its archive and, as root, with a full disk. Local retention is small, so that they read over both tiers.
In the end everything is read from the beginning, and the history is checked for anomalies. Prints JSON; the exit code is 1 if
there is any, and its history is kept. With --mutant the endpoint is broken in one place, which is to be found within three
rounds; --mutants tries them all.
"""

import argparse
import json
import os
import random  # noqa: TID251  # of a seed
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "support"), str(HERE.parent), str(HERE)]

from confluent_kafka import KafkaException, TopicPartition  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from histories.activity import too_little  # noqa: E402
from histories.anomalies import Anomaly  # noqa: E402
from histories.checker import anomalies  # noqa: E402
from histories.evidence import keep_evidence, keep_groups, librdkafka_log, where  # noqa: E402
from histories.mutants import MUTANTS  # noqa: E402
from histories.nemesis import DISK_BYTES, Nemesis, Server  # noqa: E402
from histories.operations import read_history, write_history  # noqa: E402
from histories.readers import CLASSIC, COMMITTED, CONSUMER, UNCOMMITTED, App, Assigned, Ends, Member, consumer_of  # noqa: E402
from histories.recorder import Recorder  # noqa: E402
from histories.stale_member import StaleMember  # noqa: E402
from histories.writers import ALL, PARTITIONS, Sender, Transactor, Zombie  # noqa: E402

CONFIG = {
    "internal.segment.bytes": "131072", "retention.ms": "-1", "local.retention.bytes": "65536", "file.delete.delay.ms": "1000",
    "remote.storage.enable": "true",
}  # fmt: skip
SETTLED_S_MAX, JOIN_S_MAX, ASKED_TIMES = 45, 150, 5
TIERED_S_MIN = 30
"""After so many seconds of load some of it is in the archive alone."""
SHOWN, ROUND_SHOWN = 5, ("seed", "operations", "happened", "spent_s", "too_little", "anomalies", "wrong")
CLIENTS_LOG = "librdkafka"
GROUPS = ("readers", "modern", "mixed", "app")
IDLE_PART_MAX = 3
"""One in so many rounds may have had too little time between its faults; its history counts nevertheless."""
MUTANT_ROUNDS = 3


def round_of(folder: Path, seconds: float, seed: int, mutant: str | None = None) -> tuple[list[Anomaly], dict[str, Any]]:
    """One round: the anomalies of its history, which is written to `folder`, and what happened."""
    folder.mkdir(parents=True)
    os.truncate(folder.parent / CLIENTS_LOG, 0)
    recorder, chance = Recorder(), random.Random(seed)
    with own_disk(folder / "disk"):
        server = Server(folder, mutant)
        server.start()
        try:
            create_topics(server.address)
            threads = start_clients(server, recorder, chance)
            Nemesis(server, random.Random(seed + 1)).run(time.monotonic() + seconds)
            keep_groups(server, GROUPS)
            recorder.stopping.set()
            for thread in threads:
                thread.join(JOIN_S_MAX)
            stuck = [thread for thread in threads if thread.is_alive()]
            if stuck:
                server.wrong += [f"{thread.name} does not end: {where(thread)}" for thread in stuck]
                keep_evidence(server, (thread.name for thread in threads))
            for note in tuple(recorder.open.values()):
                note()
            read_back(server, recorder, chance)
            local = {f"{topic}-{number}": first_local(server.logs / f"{topic}-{number}") for topic, number in ALL}
            server.end(signal.SIGTERM)
        finally:
            if server.process is not None and server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    history = recorder.history()
    server.wrong += server.complaints()
    lacking = too_little(history, (thread.name for thread in threads), seconds)
    if seconds >= TIERED_S_MIN and not any(local.values()):
        lacking.append("every partition is all in the local tier")
    write_history(history, folder / "history.jsonl")
    found = anomalies(history)
    report = {
        "seed": seed,
        "operations": len(history),
        "happened": dict(server.counts),
        "spent_s": dict(server.spent_s),
        "partitions_that_begin_in_the_archive": sum(offset > 0 for offset in local.values()),
        "told": dict(sorted(recorder.counts.items())),
        "too_little": lacking,
        "wrong": server.wrong,
        "anomalies": dict(Counter(one.name for one in found)),
        "shown": shown(found),
    }
    (folder / "report.json").write_text(json.dumps(report, indent=1))
    return found, report


def create_topics(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    topics = [NewTopic(topic, count, 1, config=CONFIG) for topic, count in PARTITIONS.items()]
    for future in admin.create_topics(topics).values():
        future.result(30)


def start_clients(server: Server, recorder: Recorder, chance: random.Random) -> list[threading.Thread]:
    def named(made: Any, process: str, **more: Any) -> Any:
        return made(process, server.address, recorder, random.Random(chance.random()), **more)

    modern = {"group": "modern", "protocols": (CONSUMER,)}
    mixed = {"group": "mixed", "protocols": (CLASSIC, CONSUMER)}
    clients = [
        named(Sender, "plain", is_idempotent=False), named(Sender, "idem0"), named(Sender, "idem1"), named(Transactor, "txn0"),
        named(Transactor, "txn1"), named(Zombie, "zombie"), named(Assigned, "read0"), named(Ends, "ends"),
        named(Assigned, "read1", isolation=UNCOMMITTED), named(Member, "member0"), named(Member, "member1"),
        named(Member, "modern0", **modern), named(Member, "modern1", **modern),
        named(Member, "mixed0", **mixed), named(Member, "mixed1", **mixed), named(Member, "mixed2", **mixed),
        named(App, "app0"), named(App, "app1"), named(StaleMember, "stale"),
    ]  # fmt: skip

    def run(client: Any) -> None:
        try:
            client.run()
        except Exception:  # the round is judged by all the others, too
            server.wrong.append(f"client {client.process} fails: {traceback.format_exc()}")

    threads = [threading.Thread(target=run, args=(client,), name=client.process, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    return threads


def read_back(server: Server, recorder: Recorder, chance: random.Random) -> None:
    """When all transactions have ended, reads everything, and asks for the positions of all groups."""
    recorder.stopping.clear()
    server.require_alive()
    asking = Ends("final-ends", server.address, recorder, chance)
    ends = settled(asking, server)
    server.wrong += [f"nobody tells the end of {place}" for place in ALL if place not in ends]
    for isolation in (UNCOMMITTED, COMMITTED):
        reader = Assigned(f"final-{isolation}", server.address, recorder, chance, isolation)
        if not reader.read_all(ends, SETTLED_S_MAX):
            server.wrong.append(f"final-{isolation} does not come to the end")
    for group in GROUPS:
        member = Member(f"final-{group}", server.address, recorder, chance, group=group)
        consumer = consumer_of(server.address, group, COMMITTED)
        asked = [TopicPartition(*place) for place in ALL]
        if all(None in member.told(consumer, asked) for _ in range(ASKED_TIMES)):
            server.wrong.append(f"nobody tells the positions of {group}")
        consumer.close()


def settled(asking: Ends, server: Server) -> dict[tuple[str, int], int]:
    """The ends of all partitions, when the last stable offsets are the same, or the time is over."""
    committed = consumer_of(server.address, "none", COMMITTED)
    uncommitted = consumer_of(server.address, "none", UNCOMMITTED)
    until = time.monotonic() + SETTLED_S_MAX
    while True:
        ends = asking.ends(uncommitted)
        try:
            stable = {place: committed.get_watermark_offsets(TopicPartition(*place), 10, cached=False)[1] for place in ALL}
        except KafkaException:
            stable = {}
        if (ends == stable and len(ends) == len(ALL)) or time.monotonic() > until:
            committed.close()
            uncommitted.close()
            return ends
        time.sleep(0.2)


def first_local(folder: Path) -> int:
    """The first offset that the log directory has."""
    return min((int(file.stem) for file in folder.glob("*.log")), default=0)


@contextmanager
def own_disk(folder: Path) -> Iterator[None]:
    """A small volume, where this user may mount one."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(folder)]
    is_mounted = not subprocess.run(command, check=False, capture_output=True).returncode
    try:
        yield
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def shown(found: list[Anomaly]) -> list[str]:
    """Some of each kind."""
    counts: Counter[str] = Counter()
    told = []
    for one in found:
        counts[one.name] += 1
        if counts[one.name] <= SHOWN:
            told.append(str(one))
    return told


def soak(out: Path, minutes: float, round_s: float, seed: int) -> dict[str, Any]:
    """Rounds until the time is over or one has gone wrong."""
    until, reports, wrong = time.monotonic() + minutes * 60, list[dict[str, Any]](), list[str]()
    began = time.monotonic()
    while not wrong and (not reports or time.monotonic() < until):
        folder = out / f"round{len(reports):03d}"
        _, report = round_of(folder, round_s, seed + len(reports))
        reports.append(report)
        sys.stderr.write(json.dumps({name: report[name] for name in ROUND_SHOWN}) + "\n")
        wrong = [*report["wrong"], *report["shown"]]
        if not wrong and not report["too_little"]:
            shutil.rmtree(folder)
        else:
            shutil.copy(out / CLIENTS_LOG, folder)  # the next round begins another one
        if wrong:
            wrong.append(f"see {folder / 'history.jsonl'}")
    idle = {report["seed"]: report["too_little"] for report in reports if report["too_little"]}
    if len(idle) * IDLE_PART_MAX > len(reports):
        wrong.append(f"too little was done in the rounds of these seeds: {idle}")
    return {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "rounds": len(reports),
        "rounds_of_too_little": len(idle),
        "operations": sum(report["operations"] for report in reports),
        "happened": dict(sum((Counter(report["happened"]) for report in reports), Counter())),
        "told": dict(sorted(sum((Counter(report["told"]) for report in reports), Counter()).items())),
        "partitions_that_begin_in_the_archive": [report["partitions_that_begin_in_the_archive"] for report in reports],
        "wrong": wrong,
    }


def tried(out: Path, mutant: str, round_s: float, seed: int) -> dict[str, Any]:
    """How many rounds it takes to find a mutant out, None if MUTANT_ROUNDS are too few; and by what."""
    for number in range(MUTANT_ROUNDS):
        folder = out / f"{mutant}-{number}"
        try:
            found, report = round_of(folder, round_s, seed + number, mutant)
        except (RuntimeError, KafkaException) as e:
            return {"mutant": mutant, "rounds": None, "error": str(e)}
        if found:
            shutil.rmtree(folder)
            return {"mutant": mutant, "rounds": number + 1, "anomalies": report["anomalies"]}
    return {"mutant": mutant, "rounds": None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", action="store_true", help="as said to make soak")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--round", type=float, default=60, help="seconds of load in each round")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--mutant", choices=sorted(MUTANTS), action="append", default=[], help="break this; may be given several times"
    )
    parser.add_argument("--mutants", action="store_true", help="break each in turn")
    parser.add_argument("--check", type=Path, help="only check this history")
    parser.add_argument("--out", type=Path, default=Path("soak-out"))
    given = parser.parse_args()
    if given.check is not None:
        history = read_history(given.check)
        found = anomalies(history)
        told = {
            "operations": len(history), "anomalies": dict(Counter(one.name for one in found)), "shown": shown(found),
        }  # fmt: skip
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
        sys.exit(1 if found or not history else 0)
    out = given.out.resolve()
    if out.exists():
        parser.error(f"{out} is there already; move it away, or say --out")
    out.mkdir(parents=True)
    with librdkafka_log(out / CLIENTS_LOG):
        run(out, given, sorted(MUTANTS) if given.mutants else given.mutant)


def run(out: Path, given: argparse.Namespace, mutants: list[str]) -> None:
    """Prints what is found; the exit code is 1 if something is wrong, or a mutant is not found out."""
    if mutants:
        reports = []
        for mutant in mutants:
            reports.append(tried(out, mutant, given.round, given.seed))
            sys.stdout.write(json.dumps(reports[-1]) + "\n")
            sys.stdout.flush()
        sys.exit(1 if any(report["rounds"] is None for report in reports) else 0)
    report = soak(out, given.minutes, given.round, given.seed)
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    if report["wrong"]:
        sys.exit(1)
    if not report["rounds_of_too_little"]:
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
