"""Loads a log's folder after a crash: loads, recovers and splits segments, rebuilds the producers' state (LogLoader)."""
