"""What may be done to a segment on its way into the archive, and undone on its way out: zstd, AES-256-GCM, or both.

The source is cut into chunks, each transformed on its own, so that a range of the source needs only the chunks that it touches.
"""
