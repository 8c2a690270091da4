"""Manifests for people: their versions as rows, and those that diverged from their logs."""
