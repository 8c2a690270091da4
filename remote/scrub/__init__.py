"""Verifies that an archive matches its manifests. Reports every anomaly as a finding; writes and deletes nothing."""
