"""Deliberate faults in the code. A simulation has to find each: one that it does not find is a hole in what it judges.

Some that one would expect here change nothing that is kept, so none can find them:

- A commit that takes an unknown put for one that has failed loads the newest version and applies its change again. Every
  transition is idempotent, also over the very version that it has made; a claim is told that it is fenced, and a direct write
  gives its attempt up and begins another one. It is as if the command were run again.
- A direct write that takes a new topic up without the outcome of a pending write sees it as it was before the decision. What it
  has written is placed again by what its commit loads, and that follows the decision.
- Leader epochs from below a log start offset that are not archived are below everything that is read. Where the checkpoint of
  a log was incomplete, `is_unreferenced` does not take a lineage for the whole one; so one fault takes both precautions away.
- An agent that opens whatever topic is in the folder at its turn opens one that was made a moment ago. That has no inactive
  segment yet, and so nothing to copy under the offsets of the one before.
"""

from simulated.mutants import agents, archives, clients, damage, endpoints, local_logs, losses, spark, sweeps, written_topics
from simulated.mutants.registry import MUTANTS

__all__ = [
    "MUTANTS",
    "agents",
    "archives",
    "clients",
    "damage",
    "endpoints",
    "local_logs",
    "losses",
    "spark",
    "sweeps",
    "written_topics",
]
