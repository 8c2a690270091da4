"""The agent: copies, expires, sweeps and scrubs continuously what one host's log directories and its archive need.

`schedule` decides, without a door to anything; `agent` is the flat loop that does what it says. One agent at a time has a log
directory. It may be killed at any moment: what it keeps in memory it can see again, and what it leaves behind nobody names.
"""
