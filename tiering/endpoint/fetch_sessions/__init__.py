"""Fetch sessions (KIP-227): a consumer names what has changed since its last fetch, and is answered what has changed."""
