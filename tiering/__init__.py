"""The service: introduces the local tier to the archive. Policy, offload, the one read seam and the command line."""

__version__ = "0.1.0"
