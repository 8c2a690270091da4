"""Record batches (magic 2): header, columns of records, reader and writer."""
