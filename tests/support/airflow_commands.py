"""Run by `airflow_service`: commands of `airflow`, one after the other in one process, since each takes seconds to start."""

import json
import sys


def main() -> None:
    from airflow.cli import cli_parser

    for words in json.load(sys.stdin):
        arguments = cli_parser.get_parser().parse_args(words)
        arguments.func(arguments)


if __name__ == "__main__":
    main()
