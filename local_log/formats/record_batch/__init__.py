"""Record batches (magic 2): header, columns, writer."""
