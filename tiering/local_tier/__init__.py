"""The local tier as a service: one process owns log directories, with their topics, background tasks and retention."""
