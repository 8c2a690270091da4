"""Manifests for operators: versions as rows, and partitions that diverged from their logs."""
