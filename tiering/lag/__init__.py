"""What of a local log the archive does not have: lag of copies, unprotected records, what is known without the store."""
