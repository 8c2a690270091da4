"""The formats of a segment's three index files: offset index, time index, transaction index."""
