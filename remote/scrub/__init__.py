"""The proof that an archive is what its manifests say: every anomaly a value, nothing written, nothing deleted."""
