"""Any store that fsspec reaches and that creates an object if it is absent."""
