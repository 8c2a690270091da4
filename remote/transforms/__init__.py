"""Encodings of archived segments: zstd, AES-256-GCM, or both.

Each chunk of a segment is encoded separately, so a read of a range decodes only the chunks that overlap it.
"""
