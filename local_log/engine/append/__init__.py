"""The steps before an append is written: analysis, validation, offset assignment, producer checks."""
