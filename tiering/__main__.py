"""The program `tiering`, and `python -m tiering`: Ctrl-C ends it without a traceback also while it is being loaded."""

import sys


def main() -> None:
    """Runs the command that the program's arguments name, and ends the process."""
    try:
        from tiering.cli import main as command

        command()
    except KeyboardInterrupt:
        print("tiering: interrupted", file=sys.stderr)
        sys.exit(130)  # `Exit.interrupted`, which may not be loaded yet


if __name__ == "__main__":
    main()
