"""What the job `search` is made of."""
