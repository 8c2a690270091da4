"""The three index files of a segment, as bytes: offsets, timestamps, aborted transactions."""
