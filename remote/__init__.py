"""The archive tier: segments, manifests and how to read them on an object store. Knows the formats, never the engine."""
