"""What an append passes before it is written: analysis, validation, offset assignment, checks of its producers."""
