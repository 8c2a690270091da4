"""Offsets that were lost before they were archived: detected, recorded in the manifests, acknowledged."""
