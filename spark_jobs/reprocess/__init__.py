"""What the job `reprocess` is made of."""
