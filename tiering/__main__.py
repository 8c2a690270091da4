"""`python -m tiering` is the command `tiering`."""

from tiering.cli import main

main()
