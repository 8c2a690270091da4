"""How far the archive lags behind a local log: copy lag, unprotected records, and the last known state without the store."""
