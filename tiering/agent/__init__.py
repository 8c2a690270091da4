"""The agent: copies, expires, sweeps and scrubs continuously, for the log directories of one host and their archive.

`schedule` decides and has no side effects; `agent` is the loop that executes its decisions. At most one agent at a time works on
a log directory. It may be killed at any moment: it can read its in-memory state again, and no manifest names what it leaves
behind.
"""
