"""Copies inactive segments of local logs into the archive: plan, copy, run over many logs."""
