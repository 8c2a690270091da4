"""What was lost before it was archived: noticed, recorded in the manifests, acknowledged."""
