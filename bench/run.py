"""`make bench`: what reading, archiving and a log engine cost, beside Kafka's and Spark's own way, in one run on the same data.

Real brokers on loopback are filled once; then the peers take turns, several rounds, and the best of each counts, since
neighbours on the machine only ever slow things down. What matters are the ratios.
"""

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import append_threads  # beside this file
import cleaner  # beside this file
import endpoint  # beside this file
import engine  # beside this file
import filled_broker  # beside this file
import kernels  # beside this file
import manifest  # beside this file
import offloads  # beside this file
import produce  # beside this file
import reading  # beside this file
import real_kafka  # beside the tests, not in the package
import spark  # beside this file
import start  # beside this file
import stores  # beside this file
import transforms  # beside this file
import windows  # beside this file

OUT = Path("bench-out").absolute()
PARTS = ("engine", "threads", "cleaner", "manifest", "stores", "offloads", "transforms", "reading", "endpoint", "produce")
PARTS += ("start", "kernels", "windows", "spark")
OF_A_BROKER = {"engine", "cleaner", "endpoint", "produce", "start", "kernels", "windows", "spark"}


def main() -> None:
    """Runs the parts, or one of them."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--only", choices=PARTS, help="a part of it")
    parser.add_argument("--records", type=int, default=2_000_000, help="of kernels, windows and spark")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    parts = {args.only} if args.only else set(PARTS)
    if real_kafka.maven() is None and parts & OF_A_BROKER:
        sys.exit("make bench needs Maven, which brings the broker that it measures against")
    shutil.rmtree(OUT, ignore_errors=True)
    if "engine" in parts:
        engine.run(OUT / "engine", args.rounds)
    if "threads" in parts:
        append_threads.run(OUT / "threads", args.rounds)
    if "cleaner" in parts:
        cleaner.run(OUT / "cleaner", args.rounds)
    if "manifest" in parts:
        manifest.run()
    if "stores" in parts:
        stores.run(OUT / "stores", args.rounds)
    if "offloads" in parts:
        offloads.run(OUT / "offloads", args.rounds)
    if "transforms" in parts:
        transforms.run(OUT / "transforms", args.rounds)
    if "reading" in parts:
        reading.run(OUT / "reading", args.rounds)
    if "endpoint" in parts:
        endpoint.run(OUT / "endpoint", max(args.rounds, 5))
    if "produce" in parts:
        produce.run(OUT / "produce", args.rounds)
    if "start" in parts:
        start.run(OUT / "start", max(args.rounds, 5))
    if parts & {"kernels", "windows", "spark"}:
        with filled_broker.filled(OUT / "filled", args.records) as filled:
            print(f"{args.records:,} records of {filled.record_bytes:.0f} bytes where they are not compressed")
            if "kernels" in parts:
                kernels.run(filled, args.rounds)
            if "windows" in parts:
                windows.run(filled)
            if "spark" in parts:
                spark.run(filled, OUT, args.rounds)


if __name__ == "__main__":
    main()
