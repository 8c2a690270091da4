"""Deliberate faults in the code. A simulation has to find each: one that it does not find is a hole in what it judges."""

from simulated.mutants import archives, damage, endpoints, local_logs, sweeps, written_topics
from simulated.mutants.registry import MUTANTS

__all__ = ["MUTANTS", "archives", "damage", "endpoints", "local_logs", "sweeps", "written_topics"]
