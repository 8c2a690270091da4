"""Retention of the archive and of a local log of ours: policy, plan, expiry, and the deletion of topics."""
